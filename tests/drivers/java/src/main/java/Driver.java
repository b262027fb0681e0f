import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.config.ProgrammaticDriverConfigLoaderBuilder;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchType;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.DefaultBatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.QueryTrace;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.data.CqlDuration;
import com.datastax.oss.driver.api.core.metadata.Node;
import com.datastax.oss.driver.api.core.metadata.schema.ClusteringOrder;
import com.datastax.oss.driver.api.core.metadata.schema.KeyspaceMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.SchemaChangeListenerBase;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.servererrors.AlreadyExistsException;
import com.datastax.oss.driver.api.core.servererrors.InvalidConfigurationInQueryException;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import com.datastax.oss.driver.api.core.servererrors.SyntaxError;
import com.datastax.oss.driver.api.core.uuid.Uuids;
import com.datastax.oss.driver.internal.core.auth.PlainTextAuthProvider;
import com.datastax.oss.driver.internal.core.ssl.DefaultSslEngineFactory;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The Java driver against a CQL server: see ../README.md for arguments and cases. */
public class Driver {
  private static final String KEYSPACE = "java_driver";

  private final InetSocketAddress address;
  private final CqlSession session;

  private interface Case {
    void run() throws Exception;
  }

  private Driver(InetSocketAddress address) {
    this.address = address;
    this.session = connect(Map.of());
  }

  private CqlSessionBuilder builder(Map<DefaultDriverOption, String> options) {
    var config = DriverConfigLoader.programmaticBuilder()
        .withDuration(DefaultDriverOption.METADATA_SCHEMA_WINDOW, Duration.ofMillis(1))
        .withInt(DefaultDriverOption.NETTY_IO_SHUTDOWN_QUIET_PERIOD, 0) // else each close takes two seconds
        .withInt(DefaultDriverOption.NETTY_ADMIN_SHUTDOWN_QUIET_PERIOD, 0)
        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(20))
        .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(20))
        .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, Duration.ofSeconds(20))
        .withDuration(DefaultDriverOption.METADATA_SCHEMA_REQUEST_TIMEOUT, Duration.ofSeconds(20));
    access(config);
    options.forEach(config::withString);
    return CqlSession.builder().addContactPoint(address).withLocalDatacenter("datacenter1").withConfigLoader(config.build());
  }

  /** TLS and a login, where the environment asks for them: see ../README.md. */
  private static void access(ProgrammaticDriverConfigLoaderBuilder config) {
    Map<String, String> variables = System.getenv();
    if (variables.containsKey("DRIVER_TRUSTSTORE")) {
      config
          .withClass(DefaultDriverOption.SSL_ENGINE_FACTORY_CLASS, DefaultSslEngineFactory.class)
          .withBoolean(DefaultDriverOption.SSL_HOSTNAME_VALIDATION, true)
          .withString(DefaultDriverOption.SSL_TRUSTSTORE_PATH, variables.get("DRIVER_TRUSTSTORE"))
          .withString(DefaultDriverOption.SSL_TRUSTSTORE_PASSWORD, variables.get("DRIVER_STORE_PASSWORD"));
      if (variables.containsKey("DRIVER_KEYSTORE")) {
        config
            .withString(DefaultDriverOption.SSL_KEYSTORE_PATH, variables.get("DRIVER_KEYSTORE"))
            .withString(DefaultDriverOption.SSL_KEYSTORE_PASSWORD, variables.get("DRIVER_STORE_PASSWORD"));
      }
    }
    if (variables.containsKey("DRIVER_USER")) {
      config
          .withClass(DefaultDriverOption.AUTH_PROVIDER_CLASS, PlainTextAuthProvider.class)
          .withString(DefaultDriverOption.AUTH_PROVIDER_USER_NAME, variables.get("DRIVER_USER"))
          .withString(DefaultDriverOption.AUTH_PROVIDER_PASSWORD, variables.get("DRIVER_PASSWORD"));
    }
  }

  private CqlSession connect(Map<DefaultDriverOption, String> options) {
    return builder(options).build();
  }

  private static void equal(String what, Object found, Object expected) {
    if (!Objects.equals(found, expected)) {
      throw new AssertionError(what + ": found " + found + ", expected " + expected);
    }
  }

  private static void holds(String what, boolean condition) {
    if (!condition) {
      throw new AssertionError(what);
    }
  }

  private void refused(Class<? extends Exception> kind, String text, String statement) {
    try {
      session.execute(statement);
    } catch (Exception error) {
      holds(error + " is no " + kind.getSimpleName(), kind.isInstance(error));
      holds("the message of " + error + " lacks '" + text + "'", error.getMessage().contains(text));
      return;
    }
    throw new AssertionError("accepted: " + statement);
  }

  private String table(String name, String columns) {
    session.execute("DROP TABLE IF EXISTS " + KEYSPACE + "." + name);
    session.execute("CREATE TABLE " + KEYSPACE + "." + name + " (" + columns + ")");
    return KEYSPACE + "." + name;
  }

  private List<Integer> ints(ResultSet rows) {
    List<Integer> found = new ArrayList<>();
    rows.forEach(row -> found.add(row.getInt(0)));
    return found;
  }

  private void connectCase() {
    equal("protocol", session.getContext().getProtocolVersion().name(), "V5");
    Node node = session.getMetadata().getNodes().values().iterator().next();
    equal("nodes", session.getMetadata().getNodes().size(), 1);
    equal("datacenter", node.getDatacenter(), "datacenter1");
    equal("rack", node.getRack(), "rack1");
    equal("release", node.getCassandraVersion().getMajor(), 5);
    holds("host id", node.getHostId() != null && node.getSchemaVersion() != null);
    holds("token map", session.getMetadata().getTokenMap().isPresent());
    for (String version : List.of("V3", "V4")) {
      try (CqlSession other = connect(Map.of(DefaultDriverOption.PROTOCOL_VERSION, version))) {
        equal(version, other.execute("SELECT key FROM system.local").one().getString(0), "local");
      }
    }
  }

  private TableMetadata made() {
    KeyspaceMetadata keyspace = session.getMetadata().getKeyspace(KEYSPACE).orElseThrow();
    return keyspace.getTable("made").orElse(null);
  }

  private void schemaCase() {
    String create = "CREATE TABLE " + KEYSPACE + ".made (a int, b text, c timeuuid, s text static, v blob, "
        + "PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'made here'";
    session.execute("DROP TABLE IF EXISTS " + KEYSPACE + ".made");
    session.execute(create);
    equal("partition key", made().getPartitionKey().size(), 2);
    equal("order", made().getClusteringColumns().values().iterator().next(), ClusteringOrder.DESC);
    holds("static", made().getColumn("s").orElseThrow().isStatic());
    holds("compact", !made().isCompactStorage());
    refused(AlreadyExistsException.class, "made", create);
    session.execute(create.replace("TABLE", "TABLE IF NOT EXISTS"));
    session.execute("ALTER TABLE " + KEYSPACE + ".made ADD w int");
    holds("altered", made().getColumn("w").isPresent());
    session.execute("DROP TABLE " + KEYSPACE + ".made");
    equal("dropped", made(), null);
    holds("agreement", session.checkSchemaAgreement());
  }

  private void typesCase() throws Exception {
    Instant moment = Instant.parse("2026-11-21T09:30:15.123Z");
    Map<String, Object[]> values = new LinkedHashMap<>();
    values.put("ascii", new Object[] {"", "abc"});
    values.put("bigint", new Object[] {Long.MAX_VALUE, Long.MIN_VALUE});
    values.put("blob", new Object[] {ByteBuffer.allocate(0), ByteBuffer.wrap(new byte[] {0, -1})});
    values.put("boolean", new Object[] {true, false});
    values.put("date", new Object[] {LocalDate.of(2026, 11, 21), LocalDate.of(-5_000, 1, 1)});
    values.put("decimal", new Object[] {new BigDecimal("-12345678901234567890.123456789"), new BigDecimal("1E+40")});
    values.put("double", new Object[] {-1.5e300, Double.MIN_VALUE});
    values.put("duration", new Object[] {CqlDuration.newInstance(1, 2, 3), CqlDuration.newInstance(-1, -2, -3)});
    values.put("float", new Object[] {1.5f, Float.NEGATIVE_INFINITY});
    values.put("inet", new Object[] {InetAddress.getByName("127.0.0.1"), InetAddress.getByName("2001:db8::1")});
    values.put("int", new Object[] {Integer.MAX_VALUE, Integer.MIN_VALUE});
    values.put("smallint", new Object[] {Short.MAX_VALUE, Short.MIN_VALUE});
    values.put("text", new Object[] {"", "γαῖα"});
    values.put("time", new Object[] {LocalTime.MAX, LocalTime.MIDNIGHT});
    values.put("timestamp", new Object[] {moment, Instant.EPOCH});
    values.put("timeuuid", new Object[] {Uuids.timeBased(), Uuids.startOf(moment.toEpochMilli())});
    values.put("tinyint", new Object[] {Byte.MAX_VALUE, Byte.MIN_VALUE});
    values.put("uuid", new Object[] {UUID.randomUUID(), new UUID(0, 0)});
    values.put("varchar", new Object[] {"", "same as text"});
    values.put("varint", new Object[] {BigInteger.ONE.shiftLeft(200), BigInteger.valueOf(-129)});
    StringBuilder columns = new StringBuilder();
    values.keySet().forEach(name -> columns.append(", ").append(name).append("_ ").append(name));
    String full = table("types", "k int PRIMARY KEY" + columns);
    String names = String.join("_, ", values.keySet()) + "_";
    String marks = ", ?".repeat(values.size());
    PreparedStatement insert = session.prepare("INSERT INTO " + full + " (k, " + names + ") VALUES (?" + marks + ")");
    PreparedStatement select = session.prepare("SELECT " + names + " FROM " + full + " WHERE k = ?");
    for (int k = 0; k < 3; k++) {
      Object[] bound = new Object[values.size() + 1];
      bound[0] = k;
      int at = 1;
      for (Object[] pair : values.values()) {
        bound[at++] = k < 2 ? pair[k] : null;
      }
      session.execute(insert.bind(bound));
      Row row = session.execute(select.bind(k)).one();
      for (int i = 0; i < values.size(); i++) {
        equal("column " + i, row.getObject(i), bound[i + 1]);
      }
    }
  }

  private void simpleCase() {
    String full = table("simple", "k int, c int, v text, PRIMARY KEY (k, c)");
    session.execute(SimpleStatement.newInstance("INSERT INTO " + full + " (k, c, v) VALUES (?, ?, ?)", 1, 2, "three"));
    session.execute(SimpleStatement.newInstance("INSERT INTO " + full + " (k, c, v) VALUES (:k, :c, :v)",
        Map.of("k", 1, "c", 3, "v", "four")));
    List<String> found = new ArrayList<>();
    session.execute("SELECT v FROM " + full + " WHERE k = 1").forEach(row -> found.add(row.getString("v")));
    equal("rows", found, List.of("three", "four"));
  }

  private void preparedCase() throws Exception {
    String full = table("prepared", "k int, c int, a int, b text, PRIMARY KEY (k, c)");
    PreparedStatement insert = session.prepare("INSERT INTO " + full + " (k, c, a, b) VALUES (?, ?, ?, ?)");
    equal("routing key", insert.getPartitionKeyIndices(), List.of(0));
    session.execute(insert.bind(1, 1, 10, "ten"));
    BoundStatement unset = insert.bind(1, 1).setToNull("b");
    session.execute(unset);
    Row row = session.execute("SELECT a, b FROM " + full + " WHERE k = 1").one();
    equal("unset keeps, null deletes", Arrays.asList(row.getObject(0), row.getObject(1)), Arrays.asList(10, null));
    session.execute(insert.bind(3, 1, 1, "x").setQueryTimestamp(1234567));
    equal("timestamp", session.execute("SELECT writetime(a) FROM " + full + " WHERE k = 3").one().getLong(0), 1234567L);
    List<CompletionStage<?>> pending = new ArrayList<>();
    for (int c = 0; c < 500; c++) {
      pending.add(session.executeAsync(insert.bind(2, c, c, "many")));
    }
    for (CompletionStage<?> one : pending) {
      one.toCompletableFuture().get(20, TimeUnit.SECONDS);
    }
    equal("500 at once", session.execute("SELECT count(*) FROM " + full + " WHERE k = 2").one().getLong(0), 500L);
  }

  private void batchCase() {
    String full = table("batches", "k int, c int, v text, PRIMARY KEY (k, c)");
    PreparedStatement insert = session.prepare("INSERT INTO " + full + " (k, c, v) VALUES (?, ?, ?)");
    for (BatchType type : List.of(DefaultBatchType.LOGGED, DefaultBatchType.UNLOGGED)) {
      int k = type.getProtocolCode();
      BatchStatement batch = BatchStatement.newInstance(type).setQueryTimestamp(777);
      for (int c = 0; c < 20; c++) {
        batch = batch.add(insert.bind(k, c, "v"));
      }
      batch = batch.add(SimpleStatement.newInstance("INSERT INTO " + full + " (k, c, v) VALUES (?, 20, 'text')", k));
      session.execute(batch);
      Row row = session.execute("SELECT count(*), max(writetime(v)) FROM " + full + " WHERE k = " + k).one();
      equal("rows", row.getLong(0), 21L);
      equal("timestamp", row.getLong(1), 777L);
    }
  }

  private void pagingCase() {
    String full = table("paging", "k int, c int, PRIMARY KEY (k, c)");
    PreparedStatement insert = session.prepare("INSERT INTO " + full + " (k, c) VALUES (?, ?)");
    for (int k = 0; k < 10; k++) {
      BatchStatement batch = BatchStatement.newInstance(DefaultBatchType.UNLOGGED);
      for (int c = 0; c < 100; c++) {
        batch = batch.add(insert.bind(k, k * 100 + c));
      }
      session.execute(batch);
    }
    SimpleStatement all = SimpleStatement.newInstance("SELECT c FROM " + full).setPageSize(77);
    List<Integer> found = ints(session.execute(all));
    Set<Integer> different = new HashSet<>(found);
    equal("rows", found.size(), 1000);
    equal("different rows", different.size(), 1000);
    SimpleStatement one = SimpleStatement.newInstance("SELECT c FROM " + full + " WHERE k = 3").setPageSize(30);
    ResultSet first = session.execute(one);
    equal("a page", first.getAvailableWithoutFetching(), 30);
    ResultSet next = session.execute(one.setPagingState(first.getExecutionInfo().getPagingState()));
    equal("the next page", next.one().getInt(0), 330);
  }

  private void slicesCase() {
    for (String order : List.of("ASC", "DESC")) {
      String full = table("slices", "k text, c text, v int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c " + order);
      PreparedStatement insert = session.prepare("INSERT INTO " + full + " (k, c, v) VALUES ('row', ?, ?)");
      for (int i = 0; i < 300; i++) {
        session.execute(insert.bind(String.format("%04d", i), i));
      }
      String select = "SELECT v FROM " + full + " WHERE k = 'row' ";
      equal("a name", ints(session.execute(select + "AND c = '0042'")), List.of(42));
      equal("names", ints(session.execute(session.prepare(select + "AND c IN ? ORDER BY c ASC")
          .bind(List.of("0200", "0007", "none")))), List.of(7, 200));
      equal("a range", ints(session.execute(select + "AND c >= '0100' AND c < '0103' ORDER BY c ASC")),
          List.of(100, 101, 102));
      equal("backwards", ints(session.execute(select + "AND c < '0100' ORDER BY c DESC LIMIT 3")), List.of(99, 98, 97));
    }
  }

  private void errorsCase() {
    refused(SyntaxError.class, "line 1:0 no viable alternative at input 'SELEC'", "SELEC * FROM x");
    refused(InvalidQueryException.class, "table absent does not exist", "SELECT * FROM " + KEYSPACE + ".absent");
    refused(InvalidConfigurationInQueryException.class, "Unable to find replication strategy class",
        "CREATE KEYSPACE bad WITH replication = {'class': 'NoStrategy'}");
  }

  private void compressionCase() {
    String full = table("compression", "k int PRIMARY KEY, v text");
    String text = "compressible ".repeat(25_000);
    int k = 0;
    for (List<String> kind : List.of(List.of("lz4", "V5"), List.of("lz4", "V4"), List.of("snappy", "V4"))) {
      k++;
      try (CqlSession other = connect(Map.of(DefaultDriverOption.PROTOCOL_COMPRESSION, kind.get(0),
          DefaultDriverOption.PROTOCOL_VERSION, kind.get(1)))) {
        other.execute(SimpleStatement.newInstance("INSERT INTO " + full + " (k, v) VALUES (?, ?)", k, text));
        String found = other.execute("SELECT v FROM " + full + " WHERE k = " + k).one().getString(0);
        holds(kind + ": the text came back otherwise", text.equals(found));
      }
    }
  }

  private void tracingCase() {
    ResultSet rows = session.execute(SimpleStatement.newInstance("SELECT key FROM system.local").setTracing(true));
    QueryTrace trace = rows.getExecutionInfo().getQueryTrace();
    equal("request", trace.getRequestType(), "Execute CQL3 query");
    holds("an empty trace", !trace.getEvents().isEmpty());
  }

  private void eventsCase() throws Exception {
    CountDownLatch heard = new CountDownLatch(1);
    String name = KEYSPACE + "_event";
    session.execute("DROP KEYSPACE IF EXISTS " + name);
    try (CqlSession other = builder(Map.of()).addSchemaChangeListener(new SchemaChangeListenerBase() {
      @Override
      public void onKeyspaceCreated(KeyspaceMetadata keyspace) {
        if (keyspace.getName().asInternal().equals(name)) {
          heard.countDown();
        }
      }
    }).build()) {
      session.execute("CREATE KEYSPACE " + name + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
      holds("no event of the new keyspace within 20 s", heard.await(20, TimeUnit.SECONDS));
    }
    session.execute("DROP KEYSPACE " + name);
  }

  private void metadataIdCase() {
    String full = table("metadata_id", "k int PRIMARY KEY, a int");
    PreparedStatement select = session.prepare("SELECT * FROM " + full + " WHERE k = ?");
    equal("before", session.execute(select.bind(1)).getColumnDefinitions().size(), 2);
    try (CqlSession other = connect(Map.of())) {
      other.execute("ALTER TABLE " + full + " ADD b int");
      other.execute("INSERT INTO " + full + " (k, a, b) VALUES (1, 2, 3)");
    }
    Row row = session.execute(select.bind(1)).one();
    equal("after ALTER TABLE ADD", List.of(row.getInt("k"), row.getInt("a"), row.getInt("b")), List.of(1, 2, 3));
  }

  private void reprepareCase() {
    String full = table("reprepare", "k int PRIMARY KEY, v int");
    PreparedStatement insert = session.prepare("INSERT INTO " + full + " (k, v) VALUES (?, ?)");
    session.execute(insert.bind(1, 1));
    session.execute("DROP TABLE " + full);
    session.execute("CREATE TABLE " + full + " (k int PRIMARY KEY, v int)");
    session.execute(insert.bind(2, 2));
    equal("rows", ints(session.execute("SELECT k FROM " + full)), List.of(2));
  }

  private Map<String, Case> cases() {
    Map<String, Case> cases = new LinkedHashMap<>();
    cases.put("connect", this::connectCase);
    cases.put("schema", this::schemaCase);
    cases.put("types", this::typesCase);
    cases.put("simple", this::simpleCase);
    cases.put("prepared", this::preparedCase);
    cases.put("batch", this::batchCase);
    cases.put("paging", this::pagingCase);
    cases.put("slices", this::slicesCase);
    cases.put("errors", this::errorsCase);
    cases.put("compression", this::compressionCase);
    cases.put("tracing", this::tracingCase);
    cases.put("events", this::eventsCase);
    cases.put("metadata_id", this::metadataIdCase);
    cases.put("reprepare", this::reprepareCase);
    return cases;
  }

  public static void main(String[] args) {
    String[] parts = args[0].split(":");
    Driver driver = new Driver(new InetSocketAddress(parts[0], Integer.parseInt(parts[1])));
    List<String> wanted = Arrays.asList(args).subList(1, args.length);
    driver.session.execute("CREATE KEYSPACE IF NOT EXISTS " + KEYSPACE
        + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    int failed = 0;
    for (Map.Entry<String, Case> entry : driver.cases().entrySet()) {
      if (!wanted.isEmpty() && !wanted.contains(entry.getKey())) {
        continue;
      }
      try {
        entry.getValue().run();
        System.out.println("ok " + entry.getKey());
      } catch (Throwable error) { // one broken case must not hide the others
        failed++;
        System.out.println("FAILED " + entry.getKey() + ": " + error);
      }
    }
    driver.session.execute("DROP KEYSPACE " + KEYSPACE);
    driver.session.close();
    if (failed > 0) {
      System.exit(1);
    }
    System.out.println("ok");
  }
}
