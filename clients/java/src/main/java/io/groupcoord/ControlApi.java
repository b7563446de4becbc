package io.groupcoord;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Requests to the control interface of groupcoord, and their answers. */
final class ControlApi {
    private static final ObjectMapper JSON = new ObjectMapper()
            .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    /** The server ends a wait itself, and says why: this is for a server that says nothing. */
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final HttpClient http;
    private final String base;
    private final String token;

    ControlApi(String base, String token) {
        this(HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build(), base.replaceAll("/+$", ""), token);
    }

    private ControlApi(HttpClient http, String base, String token) {
        this.http = http;
        this.base = base;
        this.token = token;
    }

    String url() {
        return base;
    }

    /** The same server, below {@code path}. */
    ControlApi below(String path) {
        return new ControlApi(http, base + path, token);
    }

    <T> T get(Class<T> type, String path) {
        return read(ask("GET", path, null, PATIENCE), JSON.constructType(type));
    }

    <T> List<T> list(Class<T> type, String path) {
        return read(ask("GET", path, null, PATIENCE), JSON.getTypeFactory().constructCollectionType(List.class, type));
    }

    /** The answer of a long poll, which may take {@code timeout}. */
    <T> T await(Class<T> type, String path, Duration timeout) {
        String asked = path + (path.contains("?") ? "&" : "?") + "timeout=" + timeout.toMillis() + "ms";
        return read(ask("GET", asked, null, timeout.plus(PATIENCE)), JSON.constructType(type));
    }

    String text(String path) {
        return ask("GET", path, null, PATIENCE);
    }

    <T> T post(Class<T> type, String path, Object body) {
        return read(ask("POST", path, body, PATIENCE), JSON.constructType(type));
    }

    <T> List<T> postForList(Class<T> type, String path, Object body) {
        JavaType list = JSON.getTypeFactory().constructCollectionType(List.class, type);
        return read(ask("POST", path, body, PATIENCE), list);
    }

    void post(String path, Object body) {
        ask("POST", path, body, PATIENCE);
    }

    void put(String path, Object body) {
        ask("PUT", path, body, PATIENCE);
    }

    /** Delete what this is the interface of; returns what went wrong in it. */
    List<String> deleteWithProblems() {
        Groupcoord.Problems found = read(ask("DELETE", "", null, PATIENCE), JSON.constructType(Groupcoord.Problems.class));
        return found.problems();
    }

    void delete(String path) {
        ask("DELETE", path, null, PATIENCE);
    }

    /** {@code name} as a part of a path. */
    static String part(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** A query of what is not null: {@code ?a=1&b=2}, or nothing. */
    static String query(Map<String, ?> parameters) {
        String joined = parameters.entrySet().stream()
                .filter(each -> each.getValue() != null)
                .map(each -> part(each.getKey()) + "=" + part(String.valueOf(each.getValue())))
                .collect(Collectors.joining("&"));
        return joined.isEmpty() ? "" : "?" + joined;
    }

    private String ask(String method, String path, Object body, Duration patience) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + path)).timeout(patience);
        if (token != null) {
            request.header("Authorization", "Bearer " + token);
        }
        if (body == null) {
            request.method(method, HttpRequest.BodyPublishers.noBody());
        } else {
            request.header("Content-Type", "application/json");
            request.method(method, HttpRequest.BodyPublishers.ofString(written(body)));
        }
        try {
            HttpResponse<String> response = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() >= 400) {
                throw new GroupcoordException(response.statusCode(), problem(response.body()), method + " " + path);
            }
            return response.body();
        } catch (IOException problem) {
            throw new UncheckedIOException(method + " " + base + path + " failed", problem);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted in " + method + " " + path, interrupted);
        }
    }

    private static String written(Object body) {
        try {
            return JSON.writeValueAsString(body);
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    private static <T> T read(String text, JavaType type) {
        try {
            return JSON.readValue(text, type);
        } catch (IOException problem) {
            throw new UncheckedIOException("the answer is not what this client expects: " + text, problem);
        }
    }

    private static JsonNode problem(String text) {
        try {
            JsonNode found = JSON.readTree(text);
            return found != null && found.isObject() ? found : null;
        } catch (IOException notJson) {
            return null;
        }
    }
}
