package fake

// parseOptions returns the options of args by their names, such as -e or --host, each with
// the argument behind it unless that is an option itself. What the real parser refuses, the
// tests on NVIDIA's dcgmi show.
func parseOptions(args []string) map[string]string {
	set := map[string]string{}
	for i := 0; i < len(args); i++ {
		name := args[i]
		if i+1 < len(args) && args[i+1][0] != '-' {
			i++
			set[name] = args[i]
		} else {
			set[name] = ""
		}
	}
	return set
}
