package diag

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestText: what each kind of character is shown as.
func TestText(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"text", "GPU 0 é 日本 👍 e\u0301 א °C – → ●", "GPU 0 é 日本 👍 e\u0301 א °C – → ●"},
		{"controls of ASCII", "a\x00b\x1b[2Jc\x7fd\re\nf\tg", "a b [2Jc d e f g"},
		{"C1", "a\u0080b\u0085c\u009bd\u009fe", "a�b�c�d�e"},
		{"lines", "a\u2028b\u2029c", "a b c"},
		{"blanks", "a\u00a0b\u2003c\u202fd\u3000e", "a b c d e"},
		{"bidi", "\u202a\u202b\u202c\u202d\u202e|\u2066\u2067\u2068\u2069|\u061c", "�����|����|�"},
		{"no width", "\u200b\u200c\u200d\u200e\u200f|\u2060\ufeff|\u00ad\u034f\u115f\u3164\uffa0", "�����|��|�����"},
		{"tags, private and unassigned", "\U000e0041|\ue000|\uffff", "�|�|�"},
		{"no UTF-8", "a\xffb\xc3(c\xed\xa0\x80", "a�b�(c���"},
	} {
		if got := Text(tt.text); got != tt.want {
			t.Errorf("%s: %q is shown as %q, want %q", tt.name, tt.text, got, tt.want)
		}
	}
	if got := Lines("a\n\tb\r\x1b\n"); got != "a\n b  \n" {
		t.Errorf("lines are shown as %q", got)
	}
	fine := "GPU 0"
	if testing.AllocsPerRun(10, func() { fine = Text(fine) }) != 0 {
		t.Error("safe text is copied")
	}
}

// TestWriters: text becomes safe to show, and JSON keeps its meaning.
func TestWriters(t *testing.T) {
	var shown, document bytes.Buffer
	if n, err := fmt.Fprintf(Writer(&shown), "a%s\n", "\u202e\x1b"); n != 6 || err != nil || shown.String() != "a� \n" {
		t.Errorf("%d bytes, %v: %q", n, err, &shown)
	}
	meant := map[string]string{"a": "\x1b\x7f\u009b\u202e\u2028\ufeff\U000e0041é\n"}
	if err := json.NewEncoder(JSONWriter(&document)).Encode(meant); err != nil {
		t.Fatal(err)
	}
	if want := `{"a":"\u001b\u007f\u009b\u202e\u2028\ufeff\udb40\udc41é\n"}` + "\n"; document.String() != want {
		t.Errorf("JSON is %s, want %s", &document, want)
	}
}

// TestBlanksOfJSON: the white space of a document is kept.
func TestBlanksOfJSON(t *testing.T) {
	document := "{\r\n\t\"a\":\t[1, 2]\r\n}"
	if got := string(AppendJSON(nil, []byte(document))); got != document {
		t.Errorf("%q became %q", document, got)
	}
}

// FuzzText: all that is shown prints, showing it again changes nothing, and JSON keeps its
// meaning.
func FuzzText(f *testing.F) {
	f.Add("a\x1b\u202e\xff\n")
	f.Fuzz(func(t *testing.T, text string) {
		shown := Text(text)
		if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }) || Text(shown) != shown {
			t.Errorf("%q is shown as %q", text, shown)
		}
		document, _ := json.Marshal(text)
		var want, got string
		if err := json.Unmarshal(document, &want); err != nil {
			t.Fatal(err)
		}
		escaped := AppendJSON(nil, document)
		if err := json.Unmarshal(escaped, &got); err != nil || got != want || Text(string(escaped)) != string(escaped) {
			t.Errorf("%s is escaped as %s: %v", document, escaped, err)
		}
	})
}
