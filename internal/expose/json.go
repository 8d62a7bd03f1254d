package expose

import (
	"encoding/json"
	"net/http"
)

// answerJSON answers with a value as JSON.
func answerJSON(w http.ResponseWriter, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	w.Write(append(body, '\n'))
}
