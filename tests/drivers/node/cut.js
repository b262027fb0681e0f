// The Node.js driver while a move is cut over: HOST:PORT KEYSPACE. It does what ../python/cut.py does.
'use strict';

const readline = require('node:readline');
const cassandra = require('cassandra-driver');

const { policies, types } = cassandra;
const WORKERS = 4;
const BEFORE = 100;
const AFTER = 500;
// How long other hosts are waited for, and the pause between two steps meanwhile, milliseconds.
// It has not been seen to find the nodes, so it is not waited for as long as the others.
const PATIENCE = 5000;
const PAUSE = 10;
const [address, keyspace] = process.argv.slice(2);

async function main() {
  // The driver expects the same port at all hosts.
  const port = Number(address.slice(address.lastIndexOf(':') + 1));
  const client = new cassandra.Client({
    protocolOptions: { port },
    contactPoints: [address],
    localDataCenter: 'datacenter1',
    keyspace,
    policies: { retry: new policies.retry.FallthroughRetryPolicy() },
    queryOptions: { consistency: types.consistencies.quorum, prepare: true, isIdempotent: false },
    socketOptions: { readTimeout: 30000, connectTimeout: 30000 },
  });
  await client.connect();
  const failures = [];
  const hosts = new Map();
  const counts = new Array(WORKERS).fill(0);
  let ends = false;
  let until = 0;
  let begun = 0;

  async function run(statement, values) {
    const result = await client.execute(statement, values);
    const host = result.info.queriedHost;
    hosts.set(host, (hosts.get(host) || 0) + 1);
    return result.rows;
  }

  async function work(number, started) {
    for (let after = AFTER, step = 0; after > 0; ) {
      const key = step * WORKERS + number;
      try {
        await run('INSERT INTO node_rows (k, v) VALUES (?, ?)', [key, 0]);
        await run('UPDATE node_rows SET v = ? WHERE k = ?', [key + 1, key]);
        await run('UPDATE node_lists SET l = l + ? WHERE k = ?', [[step], number]);
        const rows = await run('SELECT v FROM node_rows WHERE k = ?', [key]);
        if (rows[0].v !== key + 1) failures.push(`row ${key} had ${rows[0].v}`);
      } catch (error) {
        failures.push(`${key}: ${error}`);
      }
      step += 1;
      counts[number] = step;
      if (step === BEFORE && ++begun === WORKERS) started();
      if (ends && (hosts.size > 1 || Date.now() > until)) after -= 1;
      else if (ends) await new Promise((done) => setTimeout(done, PAUSE));
    }
  }

  const all = [];
  await new Promise((started) => {
    for (let number = 0; number < WORKERS; number++) all.push(work(number, started));
  });
  console.log('running');
  const input = readline.createInterface({ input: process.stdin });
  input.once('line', () => {
    until = Date.now() + PATIENCE;
    ends = true;
    input.close();
  });
  await Promise.all(all);
  const found = new Map();
  for await (const row of client.stream('SELECT k, v FROM node_rows', [], { autoPage: true, fetchSize: 100 })) {
    found.set(row.k, row.v);
  }
  let written = 0;
  for (let number = 0; number < WORKERS; number++) {
    for (let step = 0; step < counts[number]; step++) {
      const key = step * WORKERS + number;
      if (found.get(key) !== key + 1) failures.push(`row ${key} has ${found.get(key)}`);
    }
    written += counts[number];
    const { rows } = await client.execute('SELECT l FROM node_lists WHERE k = ?', [number]);
    const appended = [...rows[0].l].sort((one, other) => one - other);
    if (appended.length !== counts[number] || appended.some((step, at) => step !== at)) {
      failures.push(`list ${number}: ${appended.length} elements for ${counts[number]} steps`);
    }
  }
  if (found.size !== written) failures.push(`${found.size} rows of ${written}`);
  for (const failure of failures.slice(0, 20)) console.log('FAILED', failure);
  const where = [...hosts].sort().map(([host, count]) => `${host} ${count}`);
  console.log(failures.length ? 'FAILED' : 'ok', written, 'steps;', where.join(', '));
  await client.shutdown();
  process.exit(failures.length ? 1 : 0);
}

main().catch((error) => {
  console.log('FAILED', error);
  process.exit(1);
});
