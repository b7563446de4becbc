package io.groupcoord;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A process {@code groupcoord serve}, or one that runs already.
 *
 * <p>The variable {@code GROUPCOORD_CONTROL_URL} says where one runs (with {@code GROUPCOORD_CONTROL_TOKEN}, if it wants one). Without
 * it, {@code GROUPCOORD_COMMAND} is how to start one; without that, it is {@code groupcoord}.
 */
public final class GroupcoordServer implements AutoCloseable {
    private static final String READY = "control listening on ";
    private final Process process;
    private final String url;
    private final String token;

    private GroupcoordServer(Process process, String url, String token) {
        this.process = process;
        this.url = url;
        this.token = token;
    }

    /** The one that the environment names, or a new one, which ends with this program at the latest. */
    public static GroupcoordServer start() {
        String running = System.getenv("GROUPCOORD_CONTROL_URL");
        if (running != null) {
            return new GroupcoordServer(null, running, System.getenv("GROUPCOORD_CONTROL_TOKEN"));
        }
        String command = System.getenv().getOrDefault("GROUPCOORD_COMMAND", "groupcoord");
        List<String> words = new ArrayList<>(Arrays.asList(command.split(" ")));
        words.addAll(List.of("serve", "--port", "0", "--control", "127.0.0.1:0", "--quiet", "--until-stdin-ends"));
        ProcessBuilder builder = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().keySet().removeIf(name -> name.startsWith("GROUPCOORD_"));
        Process process;
        try {
            process = builder.start();
        } catch (IOException problem) {
            String how = "put groupcoord on the PATH, or say how to start it in GROUPCOORD_COMMAND";
            throw new UncheckedIOException("cannot run " + words.get(0) + ": " + how, problem);
        }
        return new GroupcoordServer(process, controlUrl(process), null);
    }

    private static String controlUrl(Process process) {
        List<String> said = new ArrayList<>();
        try {
            BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith(READY)) {
                    return line.substring(READY.length());
                }
                said.add(line);
            }
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
        throw new IllegalStateException("groupcoord has ended before it listened; it said: " + said);
    }

    /** Where its control interface is. */
    public String url() {
        return url;
    }

    /** Its first broker. */
    public Groupcoord broker() {
        return Groupcoord.connect(url, token);
    }

    /** End the process, if it was started here. */
    @Override
    public void close() {
        if (process == null) {
            return;
        }
        process.destroy();
        try {
            if (!process.waitFor(10, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException interrupted) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
