package expose

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// BenchmarkScrape scrapes once over a real connection: an upstream of 60 lines per device,
// passed through, and the kpulse_ series.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{8, 112, 1024} {
		snap := fleet(n)
		line := []byte("a_family_of_usual_length{" + string(bytes.Repeat([]byte("x"), 200)) + "} 0.123456\n")
		snap.Body = bytes.Repeat(line, 60*n)
		snap.Valid = [][]byte{snap.Body}
		for _, coding := range []string{"identity", "gzip"} {
			b.Run(fmt.Sprintf("devices=%d/%s", n, coding), func(b *testing.B) {
				server := serve(b, Options{Sources: NewSet(sourceOf(snap))})
				req, err := http.NewRequestWithContext(b.Context(), "GET", server.URL+"/metrics", http.NoBody)
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Accept-Encoding", coding)
				defer transport.CloseIdleConnections()
				b.ReportAllocs()
				for b.Loop() {
					scrape(b, req)
				}
			})
		}
	}
}

func scrape(b *testing.B, req *http.Request) {
	res, err := transport.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if err != nil || n == 0 {
		b.Fatal(n, err)
	}
}
