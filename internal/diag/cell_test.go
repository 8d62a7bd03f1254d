package diag

import "testing"

// TestGuard: formulas are guarded, numbers are not, and Unguarded restores the text.
func TestGuard(t *testing.T) {
	for text, want := range map[string]string{
		"":                  "",
		"node-7":            "node-7",
		"'quoted'":          "'quoted'",
		"''":                "''",
		"-5":                "-5",
		"+1.5e3":            "+1.5e3",
		"=1+1":              "'=1+1",
		"-":                 "'-",
		"-1-1":              "'-1-1",
		"-inf":              "'-inf",
		"+cmd|' /C calc'!A": "'+cmd|' /C calc'!A",
		"@SUM(A1)":          "'@SUM(A1)",
		" =1":               "' =1",
		"\t=1":              "'\t=1",
		"\r\n=1":            "'\r\n=1",
		"＝1":                "'＝1",
		"'=1":               "''=1",
		"''-5":              "'''-5",
	} {
		cell := string(AppendGuard(nil, text)) + text
		if cell != want || Unguarded(cell) != text {
			t.Errorf("%q is %q in a cell, want %q, and comes back as %q", text, cell, want, Unguarded(cell))
		}
	}
}

func FuzzGuard(f *testing.F) {
	f.Add("'=1")
	f.Fuzz(func(t *testing.T, text string) {
		cell := string(AppendGuard(nil, text)) + text
		if Unguarded(cell) != text {
			t.Errorf("%q comes back as %q", text, Unguarded(cell))
		}
	})
}
