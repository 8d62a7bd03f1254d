package holders

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestDenialThatNobodyNeeds is forgotten; one that is requested again and again is not.
func TestDenialThatNobodyNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newDenials(discard)
		gone := right{schema.GroupResource{Group: "ray.io", Resource: "rayclusters"}, "n"}
		here := right{schema.GroupResource{Resource: "pods"}, "n"}
		all.deny(gone, time.Now())
		for end := time.Now().Add(denialLife + outOfUse); !time.Now().After(end); time.Sleep(lookAgainSoon) {
			all.deny(here, time.Now())
			if n := len(all.notes()); n != 2 {
				t.Fatalf("%d notes before the time is over", n)
			}
		}
		if notes := all.notes(); len(notes) != 1 || !strings.Contains(notes[0].Cause, "pods") {
			t.Errorf("notes %q", notes)
		}
	})
}
