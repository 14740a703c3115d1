package isthmus;

import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;

/** One JSON object a line on standard output; the Go test reads it. Bodies are base64, everything else is text. */
final class Out {
    private Out() {}

    static synchronized void message(String key, String tag, byte[] body, int partition, long offset, long publishTime,
            long eventTime, Map<String, String> properties) {
        StringBuilder b = new StringBuilder("{");
        field(b, "key", key);
        field(b, "tag", tag);
        field(b, "body", body == null ? "" : Base64.getEncoder().encodeToString(body));
        b.append("\"partition\":").append(partition).append(",\"offset\":").append(offset);
        b.append(",\"publish_time\":").append(publishTime).append(",\"event_time\":").append(eventTime);
        b.append(",\"props\":{");
        String comma = "";
        for (Map.Entry<String, String> e : new TreeMap<>(properties).entrySet()) {
            b.append(comma).append(quote(e.getKey())).append(':').append(quote(e.getValue()));
            comma = ",";
        }
        System.out.println(b.append("}}"));
        System.out.flush();
    }

    private static void field(StringBuilder b, String name, String value) {
        b.append('"').append(name).append("\":").append(quote(value == null ? "" : value)).append(',');
    }

    static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '"' || c == '\\') {
                b.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                b.append(String.format("\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        return b.append('"').toString();
    }
}
