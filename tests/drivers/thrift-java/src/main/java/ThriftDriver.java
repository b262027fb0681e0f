import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import me.prettyprint.cassandra.serializers.LongSerializer;
import me.prettyprint.cassandra.serializers.StringSerializer;
import me.prettyprint.cassandra.service.ThriftKsDef;
import me.prettyprint.hector.api.Cluster;
import me.prettyprint.hector.api.Keyspace;
import me.prettyprint.hector.api.beans.ColumnSlice;
import me.prettyprint.hector.api.beans.HColumn;
import me.prettyprint.hector.api.beans.OrderedRows;
import me.prettyprint.hector.api.ddl.ColumnFamilyDefinition;
import me.prettyprint.hector.api.ddl.ComparatorType;
import me.prettyprint.hector.api.factory.HFactory;
import me.prettyprint.hector.api.mutation.Mutator;
import org.apache.cassandra.thrift.*;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.transport.TFramedTransport;
import org.apache.thrift.transport.TSocket;

/** ThriftDriver HOST:PORT: the client that Thrift generated for Cassandra 2.1, and Hector, a pooling client over it. */
public class ThriftDriver {
    static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    static String text(ByteBuffer bytes) {
        return StandardCharsets.UTF_8.decode(bytes.duplicate()).toString();
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    static Mutation insertion(String name, String value) {
        Column column = new Column(bytes(name)).setValue(bytes(value)).setTimestamp(1);
        return new Mutation().setColumn_or_supercolumn(new ColumnOrSuperColumn().setColumn(column));
    }

    static void generated(String host, int port) throws Exception {
        TFramedTransport transport = new TFramedTransport(new TSocket(host, port));
        Cassandra.Client client = new Cassandra.Client(new TBinaryProtocol(transport));
        transport.open();
        check(client.describe_version().startsWith("20."), "version");
        KsDef keyspace = new KsDef("generated", "org.apache.cassandra.locator.SimpleStrategy", new ArrayList<>());
        keyspace.setStrategy_options(Collections.singletonMap("replication_factor", "1"));
        client.system_add_keyspace(keyspace);
        client.set_keyspace("generated");
        client.system_add_column_family(new CfDef("generated", "Standard1").setComparator_type("UTF8Type"));
        Map<ByteBuffer, Map<String, List<Mutation>>> rows = new HashMap<>();
        for (int row = 0; row < 10; row++) {
            List<Mutation> mutations = new ArrayList<>();
            for (int column = 0; column < 5; column++) mutations.add(insertion("C" + column, "v" + row));
            rows.put(bytes("row" + row), Collections.singletonMap("Standard1", mutations));
        }
        client.batch_mutate(rows, ConsistencyLevel.ONE);
        ColumnParent parent = new ColumnParent("Standard1");
        SliceRange range = new SliceRange(bytes("C1"), bytes("C3"), false, 100);
        SlicePredicate predicate = new SlicePredicate().setSlice_range(range);
        List<ColumnOrSuperColumn> found = client.get_slice(bytes("row3"), parent, predicate, ConsistencyLevel.QUORUM);
        check(found.size() == 3 && text(found.get(0).column.bufferForName()).equals("C1"), "slice");
        KeyRange all = new KeyRange(100).setStart_key(new byte[0]).setEnd_key(new byte[0]);
        check(client.get_range_slices(parent, predicate, all, ConsistencyLevel.ONE).size() == 10, "range");
        check(client.multiget_count(Arrays.asList(bytes("row1"), bytes("none")), parent, predicate, ConsistencyLevel.ONE)
            .equals(Map.of(bytes("row1"), 3, bytes("none"), 0)), "counts");
        try {
            client.get(bytes("row1"), new ColumnPath("Standard1").setColumn(bytes("none")), ConsistencyLevel.ONE);
            throw new AssertionError("found what is not there");
        } catch (NotFoundException expected) {
            check(true, "");
        }
        try {
            client.get_slice(bytes("row1"), new ColumnParent("None"), predicate, ConsistencyLevel.ONE);
            throw new AssertionError("read a family that is not there");
        } catch (InvalidRequestException expected) {
            check(expected.why.contains("None"), expected.why);
        }
        CqlResult rowsOfCql = client.execute_cql3_query(
            bytes("SELECT * FROM \"Standard1\" WHERE key = 0x" + "726f7733"), Compression.NONE, ConsistencyLevel.ONE);
        check(rowsOfCql.rows.size() == 5, "CQL");
        client.system_drop_keyspace("generated");
        transport.close();
        System.out.println("ok generated");
    }

    static void hector(String address) {
        Cluster cluster = HFactory.getOrCreateCluster("test", address);
        StringSerializer strings = StringSerializer.get();
        ColumnFamilyDefinition wide = HFactory.createColumnFamilyDefinition("hector", "Wide", ComparatorType.UTF8TYPE);
        ColumnFamilyDefinition counts = HFactory.createColumnFamilyDefinition("hector", "Counts", ComparatorType.UTF8TYPE);
        counts.setDefaultValidationClass(ComparatorType.COUNTERTYPE.getClassName());
        cluster.addKeyspace(
            HFactory.createKeyspaceDefinition("hector", ThriftKsDef.DEF_STRATEGY_CLASS, 1, Arrays.asList(wide, counts)), true);
        Keyspace keyspace = HFactory.createKeyspace("hector", cluster);
        Mutator<String> mutator = HFactory.createMutator(keyspace, strings);
        for (int number = 0; number < 50; number++) {
            HColumn<String, Long> column = HFactory.createColumn(
                String.format("c%02d", number), (long) number, strings, LongSerializer.get());
            mutator.addInsertion("row" + number % 5, "Wide", column);
        }
        mutator.execute();
        ColumnSlice<String, Long> slice = HFactory.createSliceQuery(keyspace, strings, strings, LongSerializer.get())
            .setColumnFamily("Wide").setKey("row0").setRange("", "", true, 3).execute().get();
        check(slice.getColumns().get(0).getValue() == 45 && slice.getColumns().size() == 3, "slice " + slice);
        OrderedRows<String, String, Long> rows =
            HFactory.createRangeSlicesQuery(keyspace, strings, strings, LongSerializer.get())
                .setColumnFamily("Wide").setKeys("", "").setRange("", "", false, 100).execute().get();
        check(rows.getCount() == 5 && rows.peekLast().getColumnSlice().getColumns().size() == 10, "rows");
        mutator.incrementCounter("row", "Counts", "n", 5);
        mutator.decrementCounter("row", "Counts", "n", 2);
        check(HFactory.createCounterColumnQuery(keyspace, strings, strings)
            .setColumnFamily("Counts").setKey("row").setName("n").execute().get().getValue() == 3, "counter");
        mutator.delete("row0", "Wide", "c45", strings);
        check(HFactory.createCountQuery(keyspace, strings, strings)
            .setColumnFamily("Wide").setKey("row0").setRange("", "", 100).execute().get() == 9, "deleted");
        cluster.dropKeyspace("hector", true);
        HFactory.shutdownCluster(cluster);
        System.out.println("ok hector");
    }

    public static void main(String[] arguments) throws Exception {
        int colon = arguments[0].lastIndexOf(':');
        generated(arguments[0].substring(0, colon), Integer.parseInt(arguments[0].substring(colon + 1)));
        hector(arguments[0]);
        System.out.println("ok");
        System.exit(0);
    }
}
