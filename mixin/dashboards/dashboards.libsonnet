(import 'fleet.libsonnet') +
(import 'node.libsonnet') +
(import 'gpu.libsonnet') +
(import 'efficiency.libsonnet') +
(import 'namespace.libsonnet') +
(import 'job.libsonnet') +
(import 'classes.libsonnet') +
(import 'health.libsonnet') +
(import 'power.libsonnet') +
(import 'proxy.libsonnet')
