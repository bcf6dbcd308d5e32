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
    parts: { values: [] },
    "system-error": { values: [] },
    "package-file": { values: [] },
    input: {
      values: [
        "diagnostic",
        "package-file",
        "parts",
        "system-error",
        "@gen-operator/runtime",
        "@gen-operator/schema/cel",
        "@gen-operator/schema/definitions",
      ],
    },
    model: { values: ["diagnostic", "parts"], types: ["input"] },
    memory: { values: ["input", "output", "package-file", "parts"], types: ["diagnostic"] },
    // The rooms of commands.
    add: { values: ["generate", "input", "output", "diagnostic", "system-error"] },
    diff: {
      values: ["move", "input", "model", "output", "diagnostic", "@gen-operator/schema", "@gen-operator/schema/cel"],
    },
    doctor: {
      values: [
        ...["generate", "diff", "input", "model", "output", "diagnostic", "package-file", "system-error"],
        "@gen-operator/runtime",
      ],
    },
    editor: { values: ["input", "model", "diagnostic", "package-file"] },
    explain: { values: ["diagnostic"] },
    graph: { values: ["input", "model", "diagnostic"] },
    init: { values: ["input", "model", "output", "diagnostic"] },
    move: { values: ["output", "diagnostic"], types: ["input", "model"] },
    suggest: { values: ["input", "model", "output", "diagnostic"] },
    dev: {
      values: ["generate", "input", "diagnostic", "package-file", "system-error", "@gen-operator/schema"],
      types: ["@gen-operator/runtime"],
    },
    output: {
      values: ["model", "diagnostic", "package-file", "parts", "system-error"],
      types: ["@gen-operator/runtime", "@gen-operator/runtime/cel", "@gen-operator/runtime/codegen"],
    },
  },
  runtime: {
    base: { values: ["@gen-operator/schema"] },
    decode: { values: ["base"] },
    client: { values: ["decode", "base"] },
    cache: { values: ["decode", "base"] },
    watch: { values: ["cache", "decode", "client", "base"] },
    match: { values: ["base", "@gen-operator/schema"] },
    write: { values: ["match", "cache", "client", "base", "@gen-operator/schema"] },
    sources: { values: ["cache", "client", "base"], types: ["watch"] },
    workflow: { values: ["base"], types: ["write", "cache", "client", "sources"] },
    schedule: { values: ["base"], types: ["workflow", "cache"] },
    reconcile: {
      values: ["workflow", "write", "cache", "base"],
      types: ["schedule", "sources", "client"],
    },
    operate: { values: ["client", "base"], types: ["schedule"] },
    codegen: {
      values: ["@gen-operator/schema", "@gen-operator/schema/cel"],
      types: ["workflow", "reconcile", "sources", "cache", "base"],
    },
  },
  apiserver: {
    json: { values: ["@gen-operator/schema/definitions"] },
    // The clock and the timers of the machine, which every part may use.
    "real-time": { values: [] },
    "did-you-mean": { values: [] },
    "simulate-annotations": { values: ["did-you-mean"] },
    "number-texts": { values: ["json"] },
    clock: { values: ["real-time"] },
    "package-file": { values: [] },
    "yaml-library": { values: [] },
    "protobuf-writer": { values: [] },
    errors: { values: ["@gen-operator/schema", "@gen-operator/schema/definitions"] },
    // How code that runs within one turn waits for the forms of other versions.
    "pending-conversion": { values: ["errors"], types: ["json"] },
    storage: { values: ["errors"], types: ["json"] },
    // What is kept on disk.
    persistence: { values: ["real-time"], types: ["storage"] },
    builtin: {
      values: [
        ...["package-file", "number-texts", "errors", "json"],
        ...["@gen-operator/schema", "@gen-operator/schema/definitions"],
      ],
    },
    object: { values: ["clock", "builtin", "number-texts", "errors", "json", "@gen-operator/schema"] },
    decode: {
      values: ["yaml-library", "package-file", "number-texts", "builtin", "errors", "json", "@gen-operator/schema"],
      types: ["object"],
    },
    patch: { values: ["builtin", "errors", "json", "@gen-operator/schema"] },
    ssa: { values: ["errors", "json"] },
    // The life of CustomResourceDefinitions, and of objects of their kinds; what they may say is in @gen-operator/schema.
    definitions: {
      values: [
        "clock",
        "ssa",
        "object",
        "builtin",
        "errors",
        "json",
        "@gen-operator/schema",
        "@gen-operator/schema/definitions",
      ],
      types: ["registry"],
    },
    registry: {
      values: ["pending-conversion", "definitions", "ssa", "object", "storage", "builtin", "errors", "json"],
    },
    read: {
      values: ["real-time", "pending-conversion", "object", "builtin", "errors", "json"],
      types: ["registry", "decode", "storage"],
    },
    write: {
      values: [
        "real-time",
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
      types: ["admission", "identity"],
    },
    // What objects count for in ResourceQuotas.
    quota: { values: ["builtin", "json"] },
    // Certificates, and requests for them.
    x509: { values: [] },
    identity: {
      values: ["real-time", "x509", "read", "clock", "object", "builtin", "errors", "json"],
      types: ["registry", "storage"],
    },
    // The calls of webhooks, of admission and of conversion.
    webhooks: { values: ["real-time", "decode", "object", "builtin", "errors", "json"], types: ["registry"] },
    admission: {
      values: [
        "real-time",
        "simulate-annotations",
        "pending-conversion",
        "webhooks",
        "quota",
        "x509",
        "identity",
        "patch",
        "ssa",
        "decode",
        "object",
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
        "real-time",
        "package-file",
        "yaml-library",
        "write",
        "definitions",
        "decode",
        "object",
        "builtin",
        "json",
      ],
      types: ["registry", "storage"],
    },
    discovery: { values: ["package-file", "yaml-library", "protobuf-writer", "builtin", "errors", "json"] },
    table: { values: ["package-file", "builtin", "json"] },
    http: {
      values: [
        "real-time",
        "pending-conversion",
        "yaml-library",
        "protobuf-writer",
        "clock",
        "write",
        "read",
        "identity",
        "discovery",
        "table",
        "decode",
        "object",
        "builtin",
        "errors",
        "json",
      ],
      types: ["registry", "admission", "storage"],
    },
    faults: {
      values: ["real-time", "did-you-mean", "http", "identity", "decode", "errors", "json"],
      types: ["registry", "read"],
    },
    // Controllers that speak to any API server over HTTP.
    simulate: {
      values: [
        "real-time",
        "did-you-mean",
        "simulate-annotations",
        "x509",
        "quota",
        "builtin",
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
    texts: { values: [] },
    values: { values: ["texts"] },
    patches: { values: ["values"] },
    cel: { values: ["values", "texts"], types: ["patches"] },
    // Not for operators: what becomes a part of their bundles stands in the rooms above.
    definitions: { values: ["cel", "values", "texts"] },
  },
};
