package ledgerops.drills;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The local file system as slow:///folder, where making and renaming a file takes as many milliseconds as the file
 * named by fs.slow.control says. A second word there is a part of the paths that it holds for. Without that file all
 * is quick. Written without generics and lambdas, for Janino.
 */
public class SlowFileSystem extends RawLocalFileSystem {
    public URI getUri() {
        return URI.create("slow:///");
    }

    public String getScheme() {
        return "slow";
    }

    public FSDataOutputStream create(
            org.apache.hadoop.fs.Path path, FsPermission permission, boolean overwrite, int buffer, short copies,
            long block, Progressable progress) throws IOException {
        hesitate(path);
        return super.create(path, permission, overwrite, buffer, copies, block, progress);
    }

    public FSDataOutputStream create(
            org.apache.hadoop.fs.Path path, boolean overwrite, int buffer, short copies, long block,
            Progressable progress) throws IOException {
        hesitate(path);
        return super.create(path, overwrite, buffer, copies, block, progress);
    }

    public boolean rename(org.apache.hadoop.fs.Path from, org.apache.hadoop.fs.Path to) throws IOException {
        hesitate(to);
        return super.rename(from, to);
    }

    private void hesitate(org.apache.hadoop.fs.Path path) throws IOException {
        String[] told = told().split(" ", 2);
        if (told.length > 1 && path.toString().indexOf(told[1]) < 0) {
            return;
        }
        if (told[0].length() > 0) {
            try {
                Thread.sleep(Long.parseLong(told[0]));
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private String told() throws IOException {
        Path control = Paths.get(getConf().get("fs.slow.control"), new String[0]);
        try {
            return new String(Files.readAllBytes(control), "UTF-8").trim();
        } catch (NoSuchFileException none) {
            return "";
        }
    }
}
