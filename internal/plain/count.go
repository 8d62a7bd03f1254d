package plain

import "fmt"

// Count returns n and the noun in singular or plural: "1 GPU", "2 GPUs".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
