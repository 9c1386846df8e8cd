import java.io.DataOutput;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.hudi.io.storage.HoodieHBaseKVComparator;
import org.apache.hudi.org.apache.hadoop.hbase.KeyValue;
import org.apache.hudi.org.apache.hadoop.hbase.io.compress.Compression.Algorithm;
import org.apache.hudi.org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hudi.org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hudi.org.apache.hadoop.hbase.io.hfile.HFileContext;
import org.apache.hudi.org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;

/** Writes the HFiles of this folder with the HBase in the bundle of Hudi 0.15. */
public class HBaseFiles {
  public static void main(String[] arguments) throws IOException {
    for (Algorithm codec : new Algorithm[] {Algorithm.GZ, Algorithm.NONE}) {
      Configuration conf = new Configuration();
      conf.setInt("hfile.index.block.max.size", 100);
      conf.setInt("hfile.index.block.min.entries", 2);
      HFileContext context =
          new HFileContextBuilder()
              .withBlockSize(60)
              .withCompression(codec)
              .withCellComparator(new HoodieHBaseKVComparator())
              .build();
      Path path = new Path("hbase_" + codec.getName() + ".hfile");
      FileSystem files = FileSystem.getLocal(conf).getRaw();
      HFile.Writer writer =
          HFile.getWriterFactory(conf, new CacheConfig(conf))
              .withPath(files, path)
              .withFileContext(context)
              .create();
      for (int i = 0; i < 60; i++) {
        byte[] key = String.format("k%05d", i).getBytes();
        writer.append(new KeyValue(key, null, null, ("v" + i).repeat(i % 4).getBytes()));
      }
      writer.appendFileInfo("schema".getBytes(), "\"bytes\"".getBytes());
      writer.appendMetaBlock(
          "bloomFilter",
          new Text("AAAA") {
            @Override
            public void write(DataOutput out) throws IOException {
              out.write(getBytes(), 0, getLength());
            }
          });
      writer.close();
    }
  }
}
