import type { packages } from "./source-files.js";

/** What a folder may import beside itself. */
export interface Layer {
  values: string[];
  types?: string[];
}

/** The folders of each package. */
export const layers: Record<(typeof packages)[number], Record<string, Layer>> = {
  generator: {
    // What makes a text safe for a terminal.
    diagnostic: { values: ["@gen-operator/schema"] },
    // The `rules.ts` of each folder. `explain` and shell completion load all of them, so they import nothing else.
    rules: { values: ["diagnostic"] },
    stage: { values: [] },
    "system-error": { values: [] },
    "package-file": { values: [] },
    read: {
      values: [
        ...["rules", "diagnostic", "package-file", "stage", "system-error", "@gen-operator/runtime"],
        ...["@gen-operator/schema", "@gen-operator/schema/cel", "@gen-operator/schema/definitions"],
      ],
    },
    model: { values: [], types: ["diagnostic", "read"] },
    check: { values: ["rules", "model", "diagnostic", "stage", "@gen-operator/schema"], types: ["read"] },
    emit: {
      values: ["model", "diagnostic", "stage", "@gen-operator/schema"],
      types: ["code", "@gen-operator/runtime", "@gen-operator/runtime/cel", "@gen-operator/runtime/codegen"],
    },
    code: { values: ["rules", "emit", "check", "model", "diagnostic", "package-file", "stage"] },
    write: { values: ["rules", "read", "emit", "model", "diagnostic", "stage", "system-error"] },
    memory: { values: ["read", "emit", "package-file", "stage"], types: ["diagnostic"] },
    // The rooms of commands.
    add: { values: ["rules", "generate", "read", "write", "diagnostic", "system-error"], types: ["emit", "init"] },
    diff: {
      values: [
        ...["move", "check", "read", "model", "emit", "write", "diagnostic"],
        ...["@gen-operator/schema", "@gen-operator/schema/cel"],
      ],
    },
    doctor: {
      values: [
        ...["rules", "generate", "diff", "check", "read", "model", "emit", "diagnostic", "package-file"],
        ...["system-error", "@gen-operator/runtime"],
      ],
    },
    editor: { values: ["rules", "read", "model", "diagnostic", "package-file"] },
    explain: { values: ["rules", "diagnostic"] },
    graph: { values: ["rules", "read", "check", "model", "diagnostic"] },
    init: { values: ["rules", "read", "check", "model", "emit", "write", "diagnostic", "package-file"] },
    move: { values: ["rules", "code", "emit", "diagnostic"], types: ["read", "model", "write"] },
    suggest: { values: ["code", "read", "check", "model", "emit", "write", "diagnostic"] },
    dev: {
      values: ["generate", "read", "diagnostic", "package-file", "system-error", "@gen-operator/schema"],
      types: ["@gen-operator/runtime"],
    },
  },
  runtime: {
    base: { values: ["@gen-operator/schema"] },
    client: { values: ["base", "@gen-operator/schema"] },
    cache: { values: ["base"] },
    watch: { values: ["cache", "client", "base"] },
    sources: { values: ["cache", "client", "base"], types: ["watch"] },
    apply: { values: ["cache", "client", "base", "@gen-operator/schema"] },
    workflow: { values: ["base"], types: ["apply", "cache", "client", "sources"] },
    dependents: { values: ["workflow", "apply", "base"], types: ["cache", "client", "sources"] },
    queue: { values: ["base"], types: ["workflow", "cache"] },
    reconcile: { values: ["workflow", "apply", "base"], types: ["queue", "sources", "client", "cache"] },
    operate: { values: ["client", "base"], types: ["queue"] },
  },
  apiserver: {
    json: { values: ["@gen-operator/schema/definitions"] },
    "did-you-mean": { values: [] },
    "simulate-annotations": { values: ["did-you-mean"] },
    // The numbers that a number of JavaScript does not hold.
    "exact-numbers": { values: ["json", "@gen-operator/schema"] },
    // The clock and the timers of the machine, which every part may use.
    clock: { values: [] },
    "package-file": { values: [] },
    "yaml-library": { values: [] },
    "protobuf-writer": { values: [] },
    errors: { values: ["@gen-operator/schema", "@gen-operator/schema/definitions"] },
    // How code that runs within one turn waits for the forms of other versions.
    "pending-conversion": { values: ["errors"], types: ["json"] },
    // The objects, in memory and on disk.
    storage: { values: ["exact-numbers", "errors", "clock"], types: ["json"] },
    builtin: {
      values: [...["package-file", "exact-numbers", "errors", "json"], "@gen-operator/schema"],
    },
    // Rules that all kinds share: names, addresses, labels, selectors, immutable fields.
    validation: {
      values: ["builtin", "errors", "json", "@gen-operator/schema", "@gen-operator/schema/definitions"],
    },
    object: { values: ["clock", "validation", "builtin", "exact-numbers", "errors", "json", "@gen-operator/schema"] },
    // One strategy for each built-in kind, by group.
    strategies: {
      values: [
        ...["object", "validation", "builtin", "errors", "json"],
        ...["@gen-operator/schema", "@gen-operator/schema/definitions"],
      ],
    },
    decode: {
      values: [
        ...["yaml-library", "package-file", "exact-numbers", "validation", "builtin", "errors", "json"],
        "@gen-operator/schema",
      ],
      types: ["object"],
    },
    patch: { values: ["builtin", "errors", "json", "@gen-operator/schema"] },
    ssa: { values: ["errors", "json"] },
    // The kinds that are served, built-in ones and those of CustomResourceDefinitions.
    registry: {
      values: [
        ...["pending-conversion", "ssa", "strategies", "object", "storage", "exact-numbers", "validation", "builtin"],
        ...["errors", "json"],
        ...["@gen-operator/schema", "@gen-operator/schema/definitions"],
      ],
    },
    read: {
      values: ["clock", "pending-conversion", "decode", "object", "validation", "builtin", "errors", "json"],
      types: ["registry", "storage"],
    },
    write: {
      values: [
        "pending-conversion",
        "clock",
        "read",
        "registry",
        "patch",
        "ssa",
        "decode",
        "object",
        "storage",
        "builtin",
        "errors",
        "json",
        "@gen-operator/schema",
      ],
      types: ["admission", "identity", "exact-numbers"],
    },
    // What objects count for in ResourceQuotas.
    quota: { values: ["strategies", "builtin", "json"] },
    // Certificates, and requests for them.
    x509: { values: [] },
    identity: {
      values: ["x509", "read", "clock", "object", "validation", "errors", "json"],
      types: ["builtin", "registry", "storage"],
    },
    // The calls of webhooks, of admission and of conversion.
    webhooks: { values: ["clock", "decode", "object", "validation", "errors", "json"], types: ["registry"] },
    admission: {
      values: [
        "clock",
        "simulate-annotations",
        "pending-conversion",
        "webhooks",
        "quota",
        "x509",
        "identity",
        "patch",
        "ssa",
        "decode",
        "strategies",
        "object",
        "validation",
        "builtin",
        "errors",
        "json",
        "@gen-operator/schema",
        "@gen-operator/schema/cel",
      ],
      types: ["write", "registry", "storage"],
    },
    // What the server does by itself: its first objects, and the life of definitions.
    bootstrap: {
      values: [
        "package-file",
        "yaml-library",
        "write",
        "clock",
        "decode",
        "object",
        "builtin",
        "errors",
        "json",
        "@gen-operator/schema/definitions",
      ],
      types: ["registry", "storage"],
    },
    discovery: { values: ["package-file", "yaml-library", "protobuf-writer", "builtin", "errors", "json"] },
    table: { values: ["package-file", "builtin", "json"] },
    http: {
      values: [
        "pending-conversion",
        "yaml-library",
        "protobuf-writer",
        "clock",
        "write",
        "read",
        "identity",
        "discovery",
        "table",
        "patch",
        "ssa",
        "decode",
        "object",
        "validation",
        "builtin",
        "errors",
        "json",
        "@gen-operator/schema",
      ],
      types: ["registry", "admission", "storage"],
    },
    faults: {
      values: ["clock", "did-you-mean", "http", "identity", "decode", "errors", "json"],
      types: ["registry", "read"],
    },
    // Controllers that speak to any API server over HTTP.
    simulate: {
      values: [
        "clock",
        "did-you-mean",
        "simulate-annotations",
        "x509",
        "quota",
        "strategies",
        "errors",
        "@gen-operator/schema",
        "@gen-operator/schema/cel",
      ],
      types: ["http", "json"],
    },
    // Which of them run beside a server, and their start.
    simulated: { values: ["simulate"], types: ["x509"] },
  },
  schema: {
    strings: { values: [] },
    json: { values: [] },
    values: { values: ["json", "strings"] },
    cel: { values: ["values", "json", "strings"] },
    // Not for operators: what becomes a part of their bundles stands in the rooms above.
    definitions: { values: ["cel", "values", "json", "strings"] },
  },
};
