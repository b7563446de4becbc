import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/** Adds to each line of error_samples.py what Kafka's own classes answer when handling that request throws. */
public class ErrorResponses {
    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] columns = line.split(" ");
            short version = Short.parseShort(columns[1]);
            Errors error = Errors.forCode(Short.parseShort(columns[2]));
            byte[] body = columns[3].equals("-") ? new byte[0] : HexFormat.of().parseHex(columns[3]);
            AbstractRequest request = AbstractRequest.parseRequest(
                ApiKeys.forId(Integer.parseInt(columns[0])), version, new ByteBufferAccessor(ByteBuffer.wrap(body))).request;
            Throwable cause = error == Errors.UNKNOWN_SERVER_ERROR ? new IllegalStateException("a bug") : error.exception();
            System.out.println(line + " " + shown(request.getErrorResponse(0, cause), version));
        }
    }

    private static String shown(AbstractResponse response, short version) {
        if (response == null) {
            return "none";
        }
        var cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(response.data().size(cache, version));
        response.data().write(new ByteBufferAccessor(bytes), cache, version);
        return HexFormat.of().formatHex(bytes.array());
    }
}
