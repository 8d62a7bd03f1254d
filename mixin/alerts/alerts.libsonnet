(import 'proxy.libsonnet') +
(import 'gpu.libsonnet') +
(import 'efficiency.libsonnet') +
(import '../lib/runbooks.libsonnet')
