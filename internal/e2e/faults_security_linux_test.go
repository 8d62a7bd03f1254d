package e2e

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// webPassword is the password hashed in webConfig.
const (
	webPassword = "fakepassword"
	webConfig   = "basic_auth_users: {scraper: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}\n"
)

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// guesses returns requests with wrong credentials.
func guesses(passwords ...string) (asks []rawRequest) {
	for _, password := range passwords {
		asks = append(asks, rawRequest{request: "GET /metrics\r\nAuthorization: " + basic("scraper", password), status: "401", lacks: "kpulse_gpu"})
	}
	return append(asks, rawRequest{request: "GET /metrics\r\nAuthorization: Basic !!!", status: "401"}, rawRequest{request: "GET /metrics\r\nAuthorization: " + basic("operator", webPassword), status: "401"})
}

// echo answers with an error that repeats the whole request.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/"+r.Header.Get("Authorization"))
	w.Header().Set("Location", "/"+r.Header.Get("Authorization"))
	w.WriteHeader(http.StatusUnauthorized)
	_ = r.Write(w)
	_, _ = io.WriteString(w, r.Header.Get("Authorization"))
}

func securityFaults() []fault {
	well := seen{says: []string{temperature(during)}}
	const evil = "X-Evil"
	return []fault{
		{does: "a client guesses passwords", flags: []string{"--web.config.file=web.yml"}, files: map[string]string{"web.yml": webConfig}, headers: []string{"Authorization", basic("scraper", webPassword)},
			asks: guesses("guess-1", "guess-2", "", strings.Repeat("x", 4000)), seen: seen{says: well.says, lacks: []string{"guess-", webPassword}}},
		{does: "paths lead out of the tree", asks: []rawRequest{
			{request: "GET /../../../etc/passwd", status: "30.|404", lacks: "root:"}, {request: "GET /%2e%2e/%2e%2e/etc/passwd", status: "30.|404", lacks: "root:"},
			{request: "GET /metrics/../../etc/passwd", status: "30.|404", lacks: "root:"}, {request: "GET //etc/passwd", status: "30.|404", lacks: "root:"},
			{request: "GET /debug/pprof/../../etc/passwd", status: "30.|404", lacks: "root:"},
		}, seen: well},
		{does: "a parameter contains the end of a header", asks: []rawRequest{
			{request: "GET /metrics?source=a%0d%0aX-Evil:%201", status: "404", lacks: "\n" + evil}, {request: "GET //%0d%0aX-Evil:%201", status: "30.|404", lacks: "\n" + evil},
			{request: "GET /a%0aX-Evil:%201", status: "404", lacks: "\n" + evil},
		}, seen: well},
		{does: "the scrape timeout of a request is malformed", asks: []rawRequest{
			timeoutOf("NaN"), timeoutOf("-1"), timeoutOf("1e999"), timeoutOf("9223372036854775807"), timeoutOf(strings.Repeat("9", 1000)), timeoutOf("x"), timeoutOf(""),
		}, seen: well},
		{does: "methods are not allowed", asks: []rawRequest{{request: "POST /metrics\r\nContent-Length: 0", status: "405"}, {request: "DELETE /metrics", status: "405"}, {request: "PUT /\r\nContent-Length: 0", status: "405"}, {request: "BREW /metrics", status: "405"}}, seen: well},
		{does: "a reload is asked for without --web.enable-lifecycle", asks: []rawRequest{{request: "POST /-/reload\r\nContent-Length: 0", status: "403"}, {request: "GET /-/reload", status: "405|403"}, {request: "POST /-/resolve?uuid=GPU-1\r\nContent-Length: 0\r\nVia: 1.1 caddy", status: "403"}},
			seen: seen{says: well.says, metrics: []string{reloaded + "1"}}},
		{does: "a name that leads to the program by DNS rebinding asks for a reload", flags: []string{"--web.enable-lifecycle", "--web.hosts=gpu7.example"}, asks: []rawRequest{
			reloadAt("evil.example", "403"), reloadAt("evil.example:9401", "403"), reloadAt("127.0.0.1.evil.example", "403"), reloadAt("127.0.0.1:9401", "200"),
			reloadAt("[::1]:9401", "200"), reloadAt("localhost", "200"), reloadAt("GPU7.example:80", "200"),
		}, seen: well},
		{does: "a client speaks TLS", asks: []rawRequest{{request: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", status: "400|"}}, seen: well},
		{does: "a client asks for 2,000 encodings, and for a part of the page", asks: []rawRequest{{request: "GET /metrics\r\nAccept-Encoding: " + strings.Repeat("a;q=0.1, ", 2000) + "b\r\nRange: bytes=0-1\r\nAccept: " + strings.Repeat("x/y,", 2000), status: "200"}}, seen: well},
		{does: "the exporter repeats the program's credentials", flags: []string{"--source=http://operator:hunter2@ADDRESS/metrics"}, exporter: echo,
			seen: seen{status: http.StatusBadGateway, kind: source.BadStatus, says: []string{"HTTP 401 Unauthorized", "URL"}, lacks: []string{"hunter2", basic("operator", "hunter2")[6:]}}},
		{does: "the exporter redirects to a URL with a password and control characters", exporter: wire("HTTP/1.1 302 Found\r\nLocation: http://u:hunter2@127.0.0.1:1/\x1b[31m\r\nContent-Length: 0\r\n\r\n"),
			seen: seen{status: http.StatusBadGateway, says: []string{"URL"}, lacks: []string{"hunter2", "\x1b"}, page: []string{"● down"}}},
		{does: "the exporter's status is markup", exporter: wire("HTTP/1.1 500 <script>alert(1)</script>\r\nContent-Length: 0\r\n\r\n"), seen: seen{status: http.StatusBadGateway, kind: source.BadStatus, says: []string{"HTTP 500 Internal Server Error"}, lacks: []string{"<script>"}}},
	}
}

// timeoutOf is a scrape with this timeout header. It gets the reading.
func timeoutOf(text string) rawRequest {
	return rawRequest{request: "GET /metrics\r\nX-Prometheus-Scrape-Timeout-Seconds: " + text, status: "200"}
}

// reloadAt asks for a reload by a name of the program.
func reloadAt(host, status string) rawRequest {
	return rawRequest{request: "POST /-/reload HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status: status}
}
