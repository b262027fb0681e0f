// Prints an SSTable's content as Cassandra itself reads it: one line an element, values in hex. Beside
// tests/fixtures/*/rows.txt this is how those were made:
//   java -cp "$(cassandra.sh classpath)/*" DumpRaw.java .../da-1-bti-Data.db > rows.txt
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
        Descriptor desc = Descriptor.fromFileWithComponent(new File(args[0]), false).left;
        TableMetadata metadata = Util.metadataFromSSTable(desc);
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
                    System.out.print(out);
                    out.setLength(0);
                }
        }
        System.out.flush();
        System.exit(0);
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
