package counters

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// OldNames returns the names of 4.8, sorted, that --compat=4.8 serves in front of an
// exporter with the counters file body and that the file does not have: those that an
// exporter of 4.9 took away. Lines that are no counters give none.
func OldNames(body []byte) []string {
	var families []string
	reader := csv.NewReader(bytes.NewReader(body))
	reader.Comment, reader.FieldsPerRecord = '#', -1
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return translate.NamesIn(translate.V48, families)
		}
		if err == nil && len(record) > 1 && strings.TrimSpace(record[1]) != "label" {
			families = append(families, strings.TrimSpace(record[0]))
		}
	}
}
