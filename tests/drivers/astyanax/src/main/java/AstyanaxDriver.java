// The old RPC interface as applications on Astyanax use it.
//
//   AstyanaxDriver HOST:PORT
//
// Prints `ok CASE` for each case, and `ok` at the end.
import com.google.common.collect.ImmutableMap;
import com.netflix.astyanax.AstyanaxContext;
import com.netflix.astyanax.Keyspace;
import com.netflix.astyanax.MutationBatch;
import com.netflix.astyanax.connectionpool.NodeDiscoveryType;
import com.netflix.astyanax.connectionpool.exceptions.BadRequestException;
import com.netflix.astyanax.connectionpool.exceptions.NotFoundException;
import com.netflix.astyanax.connectionpool.impl.ConnectionPoolConfigurationImpl;
import com.netflix.astyanax.connectionpool.impl.CountingConnectionPoolMonitor;
import com.netflix.astyanax.impl.AstyanaxConfigurationImpl;
import com.netflix.astyanax.model.Column;
import com.netflix.astyanax.model.ColumnFamily;
import com.netflix.astyanax.model.ColumnList;
import com.netflix.astyanax.model.Row;
import com.netflix.astyanax.model.Rows;
import com.netflix.astyanax.query.RowQuery;
import com.netflix.astyanax.serializers.LongSerializer;
import com.netflix.astyanax.serializers.StringSerializer;
import com.netflix.astyanax.thrift.ThriftFamilyFactory;
import com.netflix.astyanax.util.RangeBuilder;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;

public class AstyanaxDriver
{
    static final String KEYSPACE = "astyanax";
    static final ColumnFamily<String, String> USERS = family("users");
    static final ColumnFamily<String, String> HITS = family("hits");
    static final ColumnFamily<String, Long> EVENTS =
        new ColumnFamily<>("events", StringSerializer.get(), LongSerializer.get());

    static ColumnFamily<String, String> family(String name)
    {
        return new ColumnFamily<>(name, StringSerializer.get(), StringSerializer.get());
    }

    public static void main(String[] args) throws Exception
    {
        int colon = args[0].lastIndexOf(':');
        int port = Integer.parseInt(args[0].substring(colon + 1));
        AstyanaxContext<Keyspace> context = new AstyanaxContext.Builder()
            .forCluster("Test Cluster")
            .forKeyspace(KEYSPACE)
            .withAstyanaxConfiguration(new AstyanaxConfigurationImpl().setDiscoveryType(NodeDiscoveryType.NONE)
                .setTargetCassandraVersion("1.2").setCqlVersion("3.0.0"))
            .withConnectionPoolConfiguration(new ConnectionPoolConfigurationImpl("pool").setPort(port)
                .setMaxConnsPerHost(2).setSeeds(args[0].substring(0, colon) + ":" + port))
            .withConnectionPoolMonitor(new CountingConnectionPoolMonitor())
            .buildKeyspace(ThriftFamilyFactory.getInstance());
        context.start();
        Keyspace keyspace = context.getClient();
        try
        {
            definitions(keyspace);
            rows(keyspace);
            ranges(keyspace);
            indexes(keyspace);
            counters(keyspace);
            statements(keyspace);
            refusals(keyspace);
            keyspace.dropKeyspace();
            ok("dropping");
        }
        finally
        {
            context.shutdown();
        }
        System.out.println("ok");
        System.exit(0);
    }

    static void definitions(Keyspace keyspace) throws Exception
    {
        keyspace.createKeyspace(ImmutableMap.<String, Object>of(
            "strategy_class", "SimpleStrategy", "strategy_options", ImmutableMap.of("replication_factor", "1")));
        ImmutableMap<String, Object> texts = ImmutableMap.<String, Object>of(
            "key_validation_class", "UTF8Type", "comparator_type", "UTF8Type", "default_validation_class", "UTF8Type");
        keyspace.createColumnFamily(USERS, ImmutableMap.<String, Object>builder().putAll(texts)
            .put("column_metadata", ImmutableMap.of("state", ImmutableMap.of(
                "validation_class", "UTF8Type", "index_name", "users_state", "index_type", "KEYS"))).build());
        keyspace.createColumnFamily(HITS, ImmutableMap.<String, Object>of(
            "key_validation_class", "UTF8Type", "comparator_type", "UTF8Type",
            "default_validation_class", "CounterColumnType"));
        keyspace.createColumnFamily(EVENTS, ImmutableMap.<String, Object>of(
            "key_validation_class", "UTF8Type", "comparator_type", "LongType", "default_validation_class", "UTF8Type"));
        List<String> names = new ArrayList<>();
        keyspace.describeKeyspace().getColumnFamilyList().forEach(found -> names.add(found.getName()));
        same("[events, hits, users]", new TreeSet<>(names).toString());
        same(1, keyspace.describeSchemaVersions().size());
        ok("definitions");
    }

    static void rows(Keyspace keyspace) throws Exception
    {
        MutationBatch batch = keyspace.prepareMutationBatch();
        batch.withRow(USERS, "jsmith").putColumn("first", "John", null).putColumn("state", "UT", null);
        batch.withRow(USERS, "adoe").putColumn("first", "Ann", null).putColumn("state", "UT", 86400);
        batch.execute();
        ColumnList<String> row = keyspace.prepareQuery(USERS).getKey("jsmith").execute().getResult();
        same("[first, state]", names(row));
        same("John", row.getStringValue("first", null));
        Column<String> one = keyspace.prepareQuery(USERS).getKey("adoe").getColumn("state").execute().getResult();
        same("UT 86400", one.getStringValue() + " " + one.getTtl());
        keyspace.prepareColumnMutation(USERS, "jsmith", "last").putValue("Smith", null).execute();
        same(3, keyspace.prepareQuery(USERS).getKey("jsmith").getCount().execute().getResult());
        Rows<String, String> several =
            keyspace.prepareQuery(USERS).getKeySlice("adoe", "jsmith", "nobody").execute().getResult();
        same("Ann", several.getRow("adoe").getColumns().getStringValue("first", null));
        batch = keyspace.prepareMutationBatch();
        batch.withRow(USERS, "jsmith").deleteColumn("last");
        batch.withRow(USERS, "gone").putColumn("first", "x", null);
        batch.execute();
        batch = keyspace.prepareMutationBatch();
        batch.withRow(USERS, "gone").delete();
        batch.execute();
        same(0, keyspace.prepareQuery(USERS).getKey("gone").execute().getResult().size());
        TreeSet<String> all = new TreeSet<>();
        for (Row<String, String> found : keyspace.prepareQuery(USERS).getAllRows().setRowLimit(2).execute().getResult())
            if (!found.getColumns().isEmpty()) all.add(found.getKey() + names(found.getColumns()));
        same("[adoe[first, state], jsmith[first, state]]", all.toString());
        ok("rows");
    }

    static void ranges(Keyspace keyspace) throws Exception
    {
        MutationBatch batch = keyspace.prepareMutationBatch();
        for (long number = -10; number < 90; number++) batch.withRow(EVENTS, "day").putColumn(number, "e" + number, null);
        batch.execute();
        ColumnList<Long> last = keyspace.prepareQuery(EVENTS).getKey("day")
            .withColumnRange(new RangeBuilder().setReversed(true).setLimit(3).build()).execute().getResult();
        same("[89, 88, 87]", names(last));
        ColumnList<Long> middle = keyspace.prepareQuery(EVENTS).getKey("day")
            .withColumnRange(new RangeBuilder().setStart(-2L).setEnd(1L).build()).execute().getResult();
        same("[-2, -1, 0, 1]", names(middle));
        same("e-2", middle.getColumnByIndex(0).getStringValue());
        ColumnList<Long> named = keyspace.prepareQuery(EVENTS).getKey("day").withColumnSlice(5L, 3L, 1000L).execute().getResult();
        same("[3, 5]", names(named));
        RowQuery<String, Long> pages = keyspace.prepareQuery(EVENTS).getKey("day").autoPaginate(true)
            .withColumnRange(new RangeBuilder().setLimit(7).build());
        int found = 0;
        for (ColumnList<Long> page = pages.execute().getResult(); !page.isEmpty(); page = pages.execute().getResult())
            found += page.size();
        same(100, found);
        ok("ranges");
    }

    static void indexes(Keyspace keyspace) throws Exception
    {
        TreeSet<String> found = new TreeSet<>();
        for (Row<String, String> row : keyspace.prepareQuery(USERS).searchWithIndex()
                .addExpression().whereColumn("state").equals().value("UT").execute().getResult())
            found.add(row.getKey());
        same("[adoe, jsmith]", found.toString());
        ok("indexes");
    }

    static void counters(Keyspace keyspace) throws Exception
    {
        for (long by : new long[] {1, 5, -2})
        {
            MutationBatch batch = keyspace.prepareMutationBatch();
            batch.withRow(HITS, "page").incrementCounterColumn("views", by);
            batch.execute();
        }
        keyspace.prepareColumnMutation(HITS, "page", "views").incrementCounterColumn(10).execute();
        same(14L, keyspace.prepareQuery(HITS).getKey("page").getColumn("views").execute().getResult().getLongValue());
        ok("counters");
    }

    static void statements(Keyspace keyspace) throws Exception
    {
        Rows<String, String> rows = keyspace.prepareQuery(USERS).withCql("SELECT * FROM users WHERE key = 'jsmith'")
            .execute().getResult().getRows();
        same("UT", rows.getRowByIndex(0).getColumns().getStringValue("state", null));
        Rows<String, String> prepared = keyspace.prepareQuery(USERS).withCql("SELECT state FROM users WHERE key = ?")
            .asPreparedStatement().withStringValue("adoe").execute().getResult().getRows();
        same("UT", prepared.getRowByIndex(0).getColumns().getStringValue("state", null));
        ok("statements");
    }

    static void refusals(Keyspace keyspace) throws Exception
    {
        try
        {
            keyspace.prepareQuery(USERS).getKey("nobody").getColumn("first").execute();
            throw new AssertionError("a column that is not there was found");
        }
        catch (NotFoundException expected) {}
        try
        {
            keyspace.prepareQuery(family("nothing")).getKey("a").execute();
            throw new AssertionError("a family that is not there was read");
        }
        catch (BadRequestException expected)
        {
            if (!expected.getMessage().contains("unconfigured table nothing")) throw expected;
        }
        ok("refusals");
    }

    /// In the order of the answer: getColumnNames gives them in none.
    static <C> String names(ColumnList<C> columns)
    {
        List<C> names = new ArrayList<>();
        for (Column<C> column : columns) names.add(column.getName());
        return names.toString();
    }

    static void same(Object expected, Object found)
    {
        if (!expected.equals(found)) throw new AssertionError("expected " + expected + ", found " + found);
    }

    static void ok(String name)
    {
        System.out.println("ok " + name);
    }
}
