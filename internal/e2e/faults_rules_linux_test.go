package e2e

import (
	"fmt"
	"strings"
)

func ruleFaults() []fault {
	// rule has a failing rule beside a valid one, which goes on.
	rule := func(does, record, expr string, s seen) fault {
		text := fmt.Sprintf("groups:\n- {name: g, interval: 1s, rules: [{record: %q, expr: %q}]}\n- {name: well, interval: 1s, rules: [{record: 'level:power:first', expr: 'vector(7)'}]}\n", record, expr)
		s.says = append(s.says, temperature(during))
		return fault{
			does: does, flags: []string{"--rules.file=r.yml", "--rules.max-samples=10000"}, files: map[string]string{"r.yml": soundRules}, seen: s,
			begin: and(puts("r.yml", text), reloads, recorded("level:power:first 7")), end: and(puts("r.yml", soundRules), reloads),
		}
	}
	failing := func(name, why string) seen {
		return seen{log: []string{"a rule cannot be evaluated", why}, rises: []string{fmt.Sprintf(`kpulse_proxy_rule_evaluation_failures_total{file="r.yml",group="g",line="2",rule=%q}`, name)}}
	}
	return []fault{
		rule("a rule returns too many series", "a:b:c", "label_replace(vector(1), 'x', '$1', 'y', '(.*)') * on() group_left() count_over_time({__name__=~'.+'}[5m:1ms])", failing("a:b:c", "correct the rule and reload")),
		rule("a rule steps through five minutes in milliseconds", "a:b:c", "max_over_time(vector(1)[5m:1ms])", failing("a:b:c", "correct the rule and reload")),
		rule("a rule gives the same labels twice", "a:b:c", "label_replace({__name__=~'DCGM_FI_DEV_.*'}, 'x', 'y', '', '')", failing("a:b:c", "two results have the same labels")),
		rule("a rule matches many to many", "a:b:c", "{__name__=~'DCGM_FI_DEV_.*'} * on(gpu) {__name__=~'DCGM_FI_DEV_.*'}", failing("a:b:c", "many-to-many")),
		rule("a rule records what the exporter serves", "DCGM_FI_DEV_GPU_TEMP", "vector(99)", failing("DCGM_FI_DEV_GPU_TEMP", "already serves a family by the name")),
		rule("a rule divides by zero", "a:b:c", "vector(0) / 0", seen{metrics: []string{`kpulse_proxy_rule_samples{file="r.yml",group="g",line="2",rule="a:b:c"} 1`}}),
		rule("a rule refers to itself", "a:b:c", "a:b:c + 1 or vector(1)", seen{metrics: []string{`kpulse_proxy_rule_samples{file="r.yml",group="g",line="2",rule="a:b:c"} 1`}}),
		rule("a rule has no result", "a:b:c", "nothing_at_all", seen{metrics: []string{`kpulse_proxy_rule_samples{file="r.yml",group="g",line="2",rule="a:b:c"} 0`}}),
	}
}

// recorded waits until a rule's result is served.
func recorded(line string) func(*world) {
	return func(w *world) {
		w.Helper()
		w.until(func() string {
			if _, body := w.get("/metrics"); !strings.Contains(body, "\n"+line+"\n") {
				return "/metrics lacks " + line + ":\n" + w.child.Logged()
			}
			return ""
		})
	}
}
