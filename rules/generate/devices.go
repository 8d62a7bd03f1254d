package main

import (
	"fmt"
	"strings"
)

const (
	// vendorNames matches every family of the exporter's fields: a device exists if it has a series
	// of any of them. Counters of the exporter itself, such as DCGM_EXP_…, continue after a board
	// is lost (translate.CountedFamilies).
	vendorNames = "(DCGM_FI|dcgm)_.+"
	// loopback matches names that every machine has, as canonical.NamesLoopback does.
	loopback = `(?i:localhost(?:\\.localdomain)?\\.?|[[]?(?:(?:::ffff:)?127\\.[0-9.]+|::1)[]]?)(?::[0-9]+)?`
)

// sourceLabels are the exporter's labels of a device, in all their spellings.
const sourceLabels = "cluster, instance, hostname, Hostname, gpu, uuid, UUID, gpu_uuid, GPU_I_ID, GPU_I_PROFILE"

// gpuRows selects families by a regular expression of their names, except rows of links, switches,
// CPUs and compute instances.
func gpuRows(names string) string {
	return fmt.Sprintf(`{__name__=~"%s", gpu!="", nvlink="", nvswitch="", cpu="", cpucore="", GPU_CI_ID=""}`, names)
}

// named gives series of sourceLabels the labels of a device. The host name is the exporter's unless
// that is loopback, in its older spelling first, since a pod's label hostname may also be present;
// otherwise the address of the target, without port and brackets.
func named(expr string) string {
	return relabelled(fmt.Sprintf("label_join(\n%s,\n"+`"hostname", ";", "Hostname", "hostname", "instance")`, indented(expr)),
		[3]string{"hostname", "hostname", "(?:(?:<<<NULL>>>|" + loopback + ")?;)*[[]?([^;]*?)[]]?(?:;.*|:[0-9]+)?"},
		[3]string{"uuid", "UUID", "([^<].*)"},
		[3]string{"uuid", "gpu_uuid", "([^<].*)"},
		[3]string{"mig_instance", "GPU_I_ID", "([^<].*)"},
		[3]string{"mig_profile", "GPU_I_PROFILE", "([^<].*)"},
	)
}

// relabelled copies labels: each row is the label to write, the label to read, and the
// part of it to copy. An empty label, or <<<NULL>>>, changes nothing.
func relabelled(expr string, rows ...[3]string) string {
	for _, r := range rows {
		expr = fmt.Sprintf("label_replace(%s,\n"+`"%s", "$1", "%s", "%s")`, expr, r[0], r[1], r[2])
	}
	return expr
}

// merged returns one series for each device, whatever pods and jobs the exporter names on its rows.
// It aggregates by sourceLabels first, so that few and short series are relabelled.
func merged(by, expr string) string {
	return fmt.Sprintf("max by (%s) (\n%s\n)", by, indented(named(fmt.Sprintf("max by (%s) (\n%s\n)", sourceLabels, indented(expr)))))
}

// deviceSection records the devices, except those that the proxy serves.
func deviceSection() section {
	models := relabelled(
		fmt.Sprintf("group by (%s, modelName, model_name) (\n%s\n)", sourceLabels, indented(gpuRows(vendorNames))),
		[3]string{"model", "modelName", "([^<].*)"}, [3]string{"model", "model_name", "([^<].*)"},
	)
	info := fmt.Sprintf("group by (%s, model) (\n%s\n)", deviceLabels, indented(named(models)))
	return section{
		comment: "Devices. Rows without a uuid belong to no device, and devices that the proxy serves are\nleft out.",
		rules: []rule{
			{infoSeries, "", info + "\nunless on (uuid) kpulse_gpu_info\nunless on (uuid) vector(0)"},
			{deviceSeries, "", fmt.Sprintf("group by (%s) (%s)", deviceLabels, infoSeries)},
			{boardSeries, "", fmt.Sprintf("group by (%s) (%s)", boardLabels, infoSeries)},
		},
	}
}

// indented indents all lines of expr by one level.
func indented(expr string) string { return "  " + strings.ReplaceAll(expr, "\n", "\n  ") }

// anyOf returns the names as a regular expression.
func anyOf(names []string) string { return strings.Join(names, "|") }
