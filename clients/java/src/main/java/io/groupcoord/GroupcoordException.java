package io.groupcoord;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;

/** What the server refused, or a wait that was in vain. Source: RFC 9457, problem details. */
public final class GroupcoordException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int status;
    private final transient JsonNode problem;

    GroupcoordException(int status, JsonNode problem, String asked) {
        super(asked + ": " + told(problem, status));
        this.status = status;
        this.problem = problem;
    }

    /** The HTTP status: 422 for a wrong field, 409 if the broker refuses the request, 504 if a wait timed out. */
    public int status() {
        return status;
    }

    /** What the broker waits for, and until when, if a wait timed out: empty for any other error. */
    public List<String> reasons() {
        return texts(problem == null ? null : problem.get("reasons"));
    }

    private static String told(JsonNode problem, int status) {
        if (problem == null) {
            return "HTTP status " + status;
        }
        StringBuilder text = new StringBuilder(problem.path("detail").asText(problem.path("title").asText()));
        for (String reason : texts(problem.get("reasons"))) {
            text.append("\n  ").append(reason);
        }
        return text.toString();
    }

    private static List<String> texts(JsonNode array) {
        List<String> found = new ArrayList<>();
        if (array != null) {
            array.forEach(each -> found.add(each.asText()));
        }
        return found;
    }
}
