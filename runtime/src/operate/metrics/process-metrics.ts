type Library = typeof import("prom-client");

/** The metrics of Node and of the process, by prom-client, which is loaded when somebody asks for the first time. */
export class ProcessMetrics {
  #registry: Promise<InstanceType<Library["Registry"]>> | undefined;

  /** Returns them in the text format of Prometheus. */
  async render(): Promise<string> {
    return (await (this.#registry ??= this.#load())).metrics();
  }

  async #load(): Promise<InstanceType<Library["Registry"]>> {
    const loaded = (await import("prom-client")) as unknown as { default?: Library } & Library;
    const library = loaded.default ?? loaded;
    const registry = new library.Registry();
    library.collectDefaultMetrics({ register: registry });
    // Gauges with the suffix of a counter, which Prometheus' own check refuses.
    for (const what of ["handles", "requests", "resources"]) registry.removeSingleMetric(`nodejs_active_${what}_total`);
    return registry;
  }
}
