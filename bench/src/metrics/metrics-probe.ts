// Measures one metrics registry in a separate process: the cost of loading it, and its cost per reconcile.
import { createRequire } from "node:module";
import { join } from "node:path";
import "node:http";
import "undici";

/** The settings of the probe. */
export interface MetricsProbeSettings {
  readonly registry: keyof typeof registries;
  /** The folder with the installed packages. */
  readonly folder: string;
}

/** The results of the probe. */
export interface MetricsCost {
  readonly startMs: number;
  readonly memoryMb: number;
  /** CPU time for all metrics of a reconcile with four dependents and five requests. */
  readonly cpuMicroseconds: number;
}

const WARM_UP = 10_000;
const RECONCILES = 100_000;
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const NAMES = {
  reconcile: "reconcile_total",
  time: "time_seconds",
  dependent: "dependent_seconds",
  requests: "requests_total",
};

/** The metrics that a reconcile records. */
interface Registry {
  count(labels: { readonly controller: string; readonly result: string }): void;
  time(labels: { readonly controller: string }, seconds: number): void;
  dependent(
    labels: { readonly controller: string; readonly dependent: string; readonly outcome: string },
    seconds: number,
  ): void;
  request(labels: { readonly code: string; readonly method: string; readonly host: string }): void;
  render(): Promise<string>;
}

interface PromClient {
  readonly Counter: new (options: object) => { inc(labels: object): void };
  readonly Histogram: new (options: object) => { observe(labels: object, value: number): void };
  readonly register: { metrics(): Promise<string> };
}

interface OpenTelemetry {
  readonly MeterProvider: new (options: object) => {
    getMeter(name: string): {
      createCounter(name: string): { add(value: number, labels: object): void };
      createHistogram(name: string, options: object): { record(value: number, labels: object): void };
    };
  };
}

interface PrometheusExporter {
  readonly PrometheusExporter: new (options: object) => {
    collect(): Promise<{ readonly resourceMetrics: object }>;
  };
  readonly PrometheusSerializer: new () => { serialize(metrics: object): string };
}

const registries = {
  async ours(): Promise<Registry> {
    const { Metric } = await import("#runtime/operate/metrics.js");
    const counter = (name: string, ...labels: string[]) => new Metric(name, { type: "counter", help: name, labels });
    const histogram = (name: string, ...labels: string[]) =>
      new Metric(name, { type: "histogram", help: name, labels, buckets: BUCKETS });
    const reconciles = counter(NAMES.reconcile, "controller", "result");
    const times = histogram(NAMES.time, "controller");
    const dependents = histogram(NAMES.dependent, "controller", "dependent", "outcome");
    const requests = counter(NAMES.requests, "code", "method", "host");
    return {
      count: ({ controller, result }) => reconciles.add([controller, result]),
      time: ({ controller }, seconds) => times.observe([controller], seconds),
      dependent: ({ controller, dependent, outcome }, seconds) =>
        dependents.observe([controller, dependent, outcome], seconds),
      request: ({ code, method, host }) => requests.add([code, method, host]),
      render() {
        const lines: string[] = [];
        for (const metric of [reconciles, times, dependents, requests]) metric.render(lines);
        return Promise.resolve(lines.join("\n"));
      },
    };
  },

  async "prom-client"(load: NodeRequire): Promise<Registry> {
    const { Counter, Histogram, register } = load("prom-client") as PromClient;
    const options = (name: string, ...labelNames: string[]) => ({ name, help: name, labelNames, buckets: BUCKETS });
    const reconciles = new Counter(options(NAMES.reconcile, "controller", "result"));
    const times = new Histogram(options(NAMES.time, "controller"));
    const dependents = new Histogram(options(NAMES.dependent, "controller", "dependent", "outcome"));
    const requests = new Counter(options(NAMES.requests, "code", "method", "host"));
    return Promise.resolve({
      count: (labels) => reconciles.inc(labels),
      time: (labels, seconds) => times.observe(labels, seconds),
      dependent: (labels, seconds) => dependents.observe(labels, seconds),
      request: (labels) => requests.inc(labels),
      render: () => register.metrics(),
    });
  },

  async opentelemetry(load: NodeRequire): Promise<Registry> {
    const { MeterProvider } = load("@opentelemetry/sdk-metrics") as OpenTelemetry;
    const exporting = load("@opentelemetry/exporter-prometheus") as PrometheusExporter;
    const exporter = new exporting.PrometheusExporter({ preventServerStart: true });
    const meter = new MeterProvider({ readers: [exporter] }).getMeter("bench");
    const advice = { advice: { explicitBucketBoundaries: BUCKETS } };
    const reconciles = meter.createCounter(NAMES.reconcile);
    const times = meter.createHistogram(NAMES.time, advice);
    const dependents = meter.createHistogram(NAMES.dependent, advice);
    const requests = meter.createCounter(NAMES.requests);
    return Promise.resolve({
      count: (labels) => reconciles.add(1, labels),
      time: (labels, seconds) => times.record(seconds, labels),
      dependent: (labels, seconds) => dependents.record(seconds, labels),
      request: (labels) => requests.add(1, labels),
      render: async () => new exporting.PrometheusSerializer().serialize((await exporter.collect()).resourceMetrics),
    });
  },
};

async function measure({ registry: name, folder }: MetricsProbeSettings): Promise<MetricsCost> {
  const load = createRequire(join(folder, "package.json"));
  const [memory, startedAt] = [memoryMb(), performance.now()];
  const registry = await registries[name](load);
  const startMs = performance.now() - startedAt;
  const loaded = memoryMb();
  for (let index = 0; index < WARM_UP; index++) tellReconcile(registry, index);
  const before = process.cpuUsage();
  for (let index = 0; index < RECONCILES; index++) tellReconcile(registry, index);
  const { user, system } = process.cpuUsage(before);
  const total = WARM_UP + RECONCILES;
  const text = await registry.render();
  if (!text.includes(`} ${total}`)) throw new Error(`${name} has not counted ${total} reconciles:\n${text}`);
  return { startMs, memoryMb: loaded - memory, cpuMicroseconds: (user + system) / RECONCILES };
}

function tellReconcile(registry: Registry, index: number): void {
  const seconds = (index % 100) / 50;
  registry.count({ controller: "page", result: "success" });
  registry.time({ controller: "page" }, seconds);
  for (const dependent of ["configMap", "deployment", "service", "ingress"])
    registry.dependent({ controller: "page", dependent, outcome: "updated" }, seconds);
  for (let request = 0; request < 5; request++)
    registry.request({ code: "200", method: "PATCH", host: "10.0.0.1:443" });
}

function memoryMb(): number {
  globalThis.gc?.();
  return process.memoryUsage().rss / 1e6;
}

process.send?.(await measure(JSON.parse(process.argv[2] ?? "{}") as MetricsProbeSettings));
