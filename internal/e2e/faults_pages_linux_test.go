package e2e

import (
	gz "compress/gzip"
	"fmt"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

func itoa(n int) string { return strconv.Itoa(n) }

// chunk is text as a chunk of HTTP.
func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// gzippedText compresses a text.
func gzippedText(text string) string {
	var b strings.Builder
	z := gz.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

// ofSource returns a series of the source with its value.
func ofSource(name string, value any) string {
	return fmt.Sprintf(`kpulse_source_%s{source="URL",backend="prometheus"} %v`, name, value)
}

// dropped returns the count of values left out for a reason.
func dropped(reason string, value any) string {
	return fmt.Sprintf(`kpulse_source_dropped_values_total{source="URL",backend="prometheus",reason=%q} %v`, reason, value)
}

// pageFaults returns pages that are no exposition, or hardly one.
func pageFaults() []fault {
	none := failedScrape(source.NotMetrics, "no line of the body is a metric", "point the source at the exporter's /metrics")
	well := seen{says: []string{temperature(during), ofSource("devices", 1)}}
	empty := seen{says: []string{ofSource("devices", 0), ofSource("up", 1)}, page: []string{"● no GPU"}, log: []string{"no GPU in the reading"}}
	return []fault{
		{does: "answers HTML", exporter: with("<html>\n<body>\n<h1>Welcome to nginx!</h1>\n</body>\n</html>\n", "Content-Type", "text/html"), seen: failedScrape(source.NotMetrics, "no line of the body is a metric, and its Content-Type is text/html")},
		{does: "answers Prometheus' binary format", exporter: with("\x91\x01\n\x14DCGM_FI_DEV_GPU_TEMP\x12\x00\x18\x01", "Content-Type", "application/vnd.google.protobuf"), seen: none2("application/vnd.google.protobuf")},
		{does: "answers NUL bytes", exporter: says(strings.Repeat("\x00", 4096)), seen: none},
		{does: "ends its lines in CRLF", exporter: says(strings.ReplaceAll(reading(during), "\n", "\r\n")), seen: failedScrape(source.NotMetrics, "CRLF", "have the exporter end its lines in LF alone")},
		{does: "answers nothing", exporter: says(""), seen: empty},
		{does: "has metrics of no GPU", exporter: says("node_load1 1\n"), seen: seen{says: []string{"node_load1 1", ofSource("devices", 0)}, page: []string{"● no GPU"}}},
		{does: "sends its page with the Content-Type of HTML", exporter: with(reading(during), "Content-Type", "text/html"), seen: well},
		{does: "sends its page without a Content-Type", exporter: wire("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + itoa(len(reading(during))) + "\r\n\r\n" + reading(during)), seen: well},
		{does: "speaks OpenMetrics", exporter: with(reading(during)+"# EOF\n", "Content-Type", "application/openmetrics-text; version=1.0.0"), seen: well},
		{does: "has no newline at its end", exporter: says(strings.TrimSuffix(reading(during), "\n")), seen: seen{says: []string{temperature(during), `DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1"} 300`}}},
		{does: "begins with a byte order mark", exporter: says("\ufeff" + reading(during)), seen: seen{says: []string{ofSource("skipped_lines_total", "1×N"), `kpulse_gpu_power_watts{hostname="n",gpu="0",uuid="GPU-1"} 300`}, lacks: []string{"\ufeff"}}},
	}
}

// none2 is a page whose Content-Type is not that of an exposition.
func none2(contentType string) seen {
	return failedScrape(source.NotMetrics, "no line of the body is a metric, and its Content-Type is "+contentType)
}
