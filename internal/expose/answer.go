package expose

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// answerText answers with lines of text.
func answerText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, diag.Lines(text)+"\n") // a write error cannot be reported
}

// answerError answers with the reason for a failure.
func answerError(w http.ResponseWriter, text string, status int) {
	http.Error(w, diag.Lines(text), status)
}

// answerJSON answers with a value as JSON.
func answerJSON(w http.ResponseWriter, value any) {
	body, err := json.Marshal(value)
	answerEncoded(w, body, err)
}

// answerEncoded answers with JSON, or with the error that prevented it.
func answerEncoded(w http.ResponseWriter, body []byte, err error) {
	if err != nil {
		answerError(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(diag.AppendJSON(nil, body), '\n'))
}
