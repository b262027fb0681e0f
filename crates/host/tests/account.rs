//! The account of the whole process: what its shares say is what the holders hold, whatever is taken, refused and
//! given back. A process of its own, because the limits are the process's.

use helenus_host::account::{self, Charge, Scope, Share, Split, Waits, metrics, set_limits};
use std::time::Duration;

const MIB: u64 = 1 << 20;

struct Drawn(u64);

impl Drawn {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Compares the account with the bytes of these charges, which are all that there are.
fn audit(charges: &[(Share, Charge)]) {
    let found = metrics();
    for share in found.shares {
        let held = charges.iter().filter(|(its, _)| *its == share.share).map(|(_, charge)| charge.bytes());
        assert_eq!(share.used, held.sum::<u64>(), "{}", share.share.name());
        assert!(share.peak < 1 << 40);
    }
    assert_eq!(found.used, charges.iter().map(|(_, charge)| charge.bytes()).sum::<u64>());
    assert!(found.peak < 1 << 40);
    assert_eq!(found.surplus, 0);
    assert_eq!(account::audit(), Ok(()));
}

/// Takes or gives back something, and says whether the account refused it.
fn draw_step(drawn: &mut Drawn, charges: &mut Vec<(Share, Charge)>) -> bool {
    let share = Share::ALL[drawn.below(6) as usize];
    let bytes = drawn.below(3) * drawn.below(3 * MIB);
    let at = drawn.below(charges.len().max(1) as u64) as usize;
    match drawn.below(8) {
        0..=2 => match Charge::try_take(share, bytes) {
            Some(charge) => charges.push((share, charge)),
            None => return true,
        },
        3 => charges.push((share, Charge::force(share, bytes))),
        4 => {
            if let Some((_, charge)) = charges.get_mut(at) {
                charge.resize(bytes);
            }
        }
        5 | 6 if !charges.is_empty() => drop(charges.swap_remove(at)),
        _ => return draw_request(drawn, share, bytes, charges),
    }
    false
}

/// Serves a request that asks for memory, and may leave an answer behind.
fn draw_request(drawn: &mut Drawn, share: Share, bytes: u64, charges: &mut Vec<(Share, Charge)>) -> bool {
    let waits = [Waits::Never, Waits::ForRoom, Waits::ThenGoesOn(Duration::ZERO)];
    let mut scope = Scope::begin(Share::Requests, waits[drawn.below(3) as usize]);
    let mut refused = account::grow(bytes as usize).is_err();
    if refused && drawn.below(2) == 0 {
        refused = !scope.should_retry();
    }
    if !refused && drawn.below(2) == 0 {
        charges.push((share, scope.hand_over(share, drawn.below(2 * MIB))));
    }
    refused
}

#[test]
fn the_shares_are_the_sum_of_what_the_holders_hold_after_every_take_refusal_and_return() {
    // Nobody waits, so that refusals are frequent and the test takes no time.
    set_limits(Split { shared: 8 * MIB, one_more: 4 * MIB }, Duration::ZERO);
    let (mut refused, mut charges) = (0, Vec::new());
    for seed in 1..=50 {
        println!("seed {seed}");
        let mut drawn = Drawn(seed);
        for _ in 0..200 {
            refused += u64::from(draw_step(&mut drawn, &mut charges));
            audit(&charges);
        }
    }
    assert!(refused > 1000, "{refused} refusals");
    // The same from several threads at once: the ledger compares meanwhile, the charges at the end.
    let held: Vec<(Share, Charge)> = std::thread::scope(|scope| {
        let run = |seed| {
            let (mut drawn, mut charges) = (Drawn(seed), Vec::new());
            for step in 0..5000 {
                draw_step(&mut drawn, &mut charges);
                if step % 50 == 0 {
                    assert_eq!(account::audit(), Ok(()));
                }
            }
            charges
        };
        let threads: Vec<_> = (100..104).map(|seed| scope.spawn(move || run(seed))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect()
    });
    charges.extend(held);
    audit(&charges);
    charges.clear();
    audit(&charges);
    let free = Charge::try_take(Share::Answers, 8 * MIB);
    assert!(free.is_some(), "all bytes are free again");
}
