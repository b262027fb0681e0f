// Prints an SSTable's content as Cassandra itself reads it: one line an element, values in hex. Beside
// tests/fixtures/*/rows.txt this is how those were made:
//   dump_raw.sh .../da-1-bti-Data.db > rows.txt
//   dump_raw.sh --beside FILES...       writes rows.txt beside each, and dump.json as sstabledump prints it
import java.util.*;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.*;
import org.apache.cassandra.db.rows.*;
import org.apache.cassandra.io.sstable.*;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.*;
import org.apache.cassandra.tools.Util;
import org.apache.cassandra.utils.ByteBufferUtil;

public class DumpRaw
{
    public static void main(String[] args) throws Exception
    {
        DatabaseDescriptor.toolInitialization(false);
        if (!args[0].equals("--beside"))
            dump(args[0], System.out);
        else
            for (int i = 1; i < args.length; i++)
            {
                java.nio.file.Path folder = java.nio.file.Paths.get(args[i]).getParent();
                try (java.io.PrintStream out = new java.io.PrintStream(folder.resolve("rows.txt").toFile(), "UTF-8"))
                {
                    dump(args[i], out);
                }
                try (java.io.OutputStream out = new java.io.FileOutputStream(folder.resolve("dump.json").toFile()))
                {
                    json(args[i], out);
                }
                catch (NullPointerException error)
                {
                    // sstabledump ends so at empty values of types that have none.
                    java.nio.file.Files.delete(folder.resolve("dump.json"));
                }
            }
        System.out.flush();
        System.exit(0);
    }

    static void json(String file, java.io.OutputStream out) throws Exception
    {
        Descriptor desc = Descriptor.fromFileWithComponent(new File(file), false).left;
        TableMetadata metadata = metadata(desc);
        SSTableReader table = SSTableReader.openNoValidation(null, desc, TableMetadataRef.forOfflineTools(metadata));
        try (ISSTableScanner scanner = table.getScanner())
        {
            java.util.stream.Stream<UnfilteredRowIterator> partitions = Util.iterToStream(scanner);
            org.apache.cassandra.tools.JsonTransformer.toJson(scanner, partitions, false, metadata, out);
        }
    }

    // Cassandra 3.0 writes frozen user types without saying so (CASSANDRA-15035): taken as what they are, for ma and mb, and
    // in the folder of files that 3.0 wrote.
    static TableMetadata metadata(Descriptor desc) throws Exception
    {
        TableMetadata metadata = Util.metadataFromSSTable(desc);
        boolean isOf30 = desc.directory.toString().contains("cassandra-3.0");
        if (!isOf30 && !desc.version.version.equals("ma") && !desc.version.version.equals("mb")) return metadata;
        TableMetadata.Builder builder = metadata.unbuild();
        for (ColumnMetadata column : metadata.regularAndStaticColumns())
            if (column.type.isUDT())
                builder.removeRegularOrStaticColumn(column.name).addColumn(column.withNewType(column.type.freeze()));
        return builder.build();
    }

    static void dump(String file, java.io.PrintStream print) throws Exception
    {
        Descriptor desc = Descriptor.fromFileWithComponent(new File(file), false).left;
        TableMetadata metadata = metadata(desc);
        SSTableReader table = SSTableReader.openNoValidation(null, desc, TableMetadataRef.forOfflineTools(metadata));
        StringBuilder out = new StringBuilder();
        try (ISSTableScanner scanner = table.getScanner())
        {
            while (scanner.hasNext())
                try (UnfilteredRowIterator partition = scanner.next())
                {
                    out.append("P ").append(ByteBufferUtil.bytesToHex(partition.partitionKey().getKey()))
                       .append(deletion(partition.partitionLevelDeletion())).append('\n');
                    if (!partition.staticRow().isEmpty())
                        row(out, "S", partition.staticRow());
                    while (partition.hasNext())
                    {
                        Unfiltered next = partition.next();
                        if (next.isRow()) row(out, "R", (Row) next);
                        else marker(out, (RangeTombstoneMarker) next);
                    }
                    print.print(out);
                    out.setLength(0);
                }
        }
    }

    static String hex(byte[] b) { return b == null ? "~" : "x" + ByteBufferUtil.bytesToHex(java.nio.ByteBuffer.wrap(b)); }

    static String deletion(DeletionTime d) { return d.markedForDeleteAt() == Long.MIN_VALUE ? " -" : " " + d.markedForDeleteAt() + "/" + d.localDeletionTime(); }

    static String values(ClusteringPrefix<?> c)
    {
        StringBuilder s = new StringBuilder();
        java.nio.ByteBuffer[] values = c.getBufferArray();
        for (java.nio.ByteBuffer v : values)
            s.append(' ').append(v == null ? "~" : "x" + ByteBufferUtil.bytesToHex(v));
        return s.toString();
    }

    static String time(long t) { return t == Long.MAX_VALUE ? "-" : "" + t; }

    static void row(StringBuilder out, String tag, Row row)
    {
        out.append(tag);
        if (!row.isStatic()) out.append(values(row.clustering()));
        LivenessInfo l = row.primaryKeyLivenessInfo();
        out.append(" L");
        if (!l.isEmpty()) out.append(l.timestamp()).append('/').append(l.ttl()).append('/').append(time(l.localExpirationTime()));
        out.append(" D").append(deletion(row.deletion().time())).append('\n');
        for (ColumnData data : row)
        {
            if (data.column().isComplex())
            {
                ComplexColumnData complex = (ComplexColumnData) data;
                if (complex.complexDeletion().markedForDeleteAt() != Long.MIN_VALUE)
                    out.append("  X ").append(data.column().name).append(deletion(complex.complexDeletion())).append('\n');
                for (Cell<?> c : complex) cell(out, c);
            }
            else cell(out, (Cell<?>) data);
        }
    }

    static void cell(StringBuilder out, Cell<?> c)
    {
        out.append("  C ").append(c.column().name).append(' ').append(c.timestamp()).append('/').append(c.ttl()).append('/')
           .append(time(c.localDeletionTime())).append(' ')
           .append(c.path() == null ? "~" : "x" + ByteBufferUtil.bytesToHex(c.path().get(0))).append(" x")
           .append(ByteBufferUtil.bytesToHex(c.buffer())).append('\n');
    }

    static void marker(StringBuilder out, RangeTombstoneMarker m)
    {
        out.append("M ").append(m.clustering().kind().ordinal()).append(values(m.clustering()));
        out.append(" E").append(m.isClose(false) ? deletion(m.closeDeletionTime(false)) : " -");
        out.append(" B").append(m.isOpen(false) ? deletion(m.openDeletionTime(false)) : " -").append('\n');
    }
}
