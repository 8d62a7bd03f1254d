package fake

// parseOptions returns the options of args by name, such as -e or --host, each with the
// argument after it unless that is an option. Tests with NVIDIA's dcgmi show what the real
// parser refuses.
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
