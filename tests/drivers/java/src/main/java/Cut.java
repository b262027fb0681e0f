import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** The Java driver while a move is cut over: HOST:PORT KEYSPACE. It does what ../python/cut.py does. */
public class Cut {
  private static final int WORKERS = 4;
  private static final int BEFORE = 100;
  private static final int AFTER = 500;
  /** How long other hosts are waited for, and the pause between two steps meanwhile, milliseconds. */
  private static final int PATIENCE = 60_000;
  private static final int PAUSE = 10;

  private final CqlSession session;
  private final PreparedStatement insert;
  private final PreparedStatement update;
  private final PreparedStatement append;
  private final PreparedStatement read;
  private final List<String> failures = new ArrayList<>();
  private final Map<String, Integer> hosts = new TreeMap<>();
  private final int[] counts = new int[WORKERS];
  private final CountDownLatch begun = new CountDownLatch(WORKERS);
  private volatile long until;

  private Cut(CqlSession session) {
    this.session = session;
    insert = session.prepare("INSERT INTO java_rows (k, v) VALUES (?, ?)");
    update = session.prepare("UPDATE java_rows SET v = ? WHERE k = ?");
    append = session.prepare("UPDATE java_lists SET l = l + ? WHERE k = ?");
    read = session.prepare("SELECT v FROM java_rows WHERE k = ?");
  }

  public static void main(String[] args) throws Exception {
    int colon = args[0].lastIndexOf(':');
    var address = new InetSocketAddress(args[0].substring(0, colon), Integer.parseInt(args[0].substring(colon + 1)));
    var config = DriverConfigLoader.programmaticBuilder()
        .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "QUORUM")
        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(30))
        .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(20))
        .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, Duration.ofSeconds(20))
        .build();
    boolean passed;
    try (var session = CqlSession.builder().addContactPoint(address).withLocalDatacenter("datacenter1").withKeyspace(args[1])
        .withConfigLoader(config).build()) {
      passed = new Cut(session).passes();
    }
    System.exit(passed ? 0 : 1);
  }

  private boolean passes() throws Exception {
    var threads = new ArrayList<Thread>();
    for (int number = 0; number < WORKERS; number++) {
      int own = number;
      threads.add(new Thread(() -> work(own)));
      threads.get(number).start();
    }
    begun.await();
    System.out.println("running");
    while (System.in.read() != '\n') {}
    until = System.currentTimeMillis() + PATIENCE;
    for (Thread thread : threads) thread.join();
    check();
    failures.stream().limit(20).forEach(failure -> System.out.println("FAILED " + failure));
    int written = 0;
    for (int count : counts) written += count;
    var where = new ArrayList<String>();
    hosts.forEach((host, count) -> where.add(host + " " + count));
    System.out.println((failures.isEmpty() ? "ok " : "FAILED ") + written + " steps; " + String.join(", ", where));
    return failures.isEmpty();
  }

  private void work(int number) {
    for (int after = AFTER, step = 0; after > 0; ) {
      int key = step * WORKERS + number;
      try {
        run(insert, key, 0);
        run(update, key + 1, key);
        run(append, List.of(step), number);
        int found = run(read, key).one().getInt("v");
        if (found != key + 1) fail("row " + key + " had " + found);
      } catch (Exception error) {
        fail(key + ": " + error);
      }
      counts[number] = ++step;
      if (step == BEFORE) begun.countDown();
      if (until > 0) {
        if (hasFound() || System.currentTimeMillis() > until) after--;
        else LockSupport.parkNanos(PAUSE * 1_000_000L);
      }
    }
  }

  private ResultSet run(PreparedStatement statement, Object... values) {
    ResultSet rows = session.execute(statement.bind(values));
    var host = rows.getExecutionInfo().getCoordinator().getEndPoint().resolve().toString();
    synchronized (hosts) {
      hosts.merge(host, 1, Integer::sum);
    }
    return rows;
  }

  private boolean hasFound() {
    synchronized (hosts) {
      return hosts.size() > 1;
    }
  }

  private void fail(String failure) {
    synchronized (failures) {
      failures.add(failure);
    }
  }

  private void check() {
    var found = new HashMap<Integer, Integer>();
    for (Row row : session.execute(SimpleStatement.newInstance("SELECT k, v FROM java_rows").setPageSize(100)
        .setConsistencyLevel(ConsistencyLevel.QUORUM))) {
      found.put(row.getInt("k"), row.getInt("v"));
    }
    int written = 0;
    for (int number = 0; number < WORKERS; number++) {
      written += counts[number];
      var steps = new ArrayList<Integer>();
      for (int step = 0; step < counts[number]; step++) {
        int key = step * WORKERS + number;
        steps.add(step);
        if (!Integer.valueOf(key + 1).equals(found.get(key))) fail("row " + key + " has " + found.get(key));
      }
      var appended = new ArrayList<>(session.execute("SELECT l FROM java_lists WHERE k = " + number).one()
          .getList("l", Integer.class));
      appended.sort(null);
      if (!appended.equals(steps)) fail("list " + number + ": " + appended.size() + " elements for " + steps.size() + " steps");
    }
    if (found.size() != written) fail(found.size() + " rows of " + written);
  }
}
