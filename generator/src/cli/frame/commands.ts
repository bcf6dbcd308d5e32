import type { AddCommand } from "./command.js";

/** A command as the overview shows it; its code is loaded when it is named. */
export interface CommandEntry {
  readonly summary: string;
  load(): Promise<AddCommand>;
}

/** All commands by their names, in the order of the overview. */
export const COMMANDS: ReadonlyMap<string, CommandEntry> = new Map(
  Object.entries<CommandEntry>({
    init: {
      summary: "Create a project that runs, from CRDs",
      load: async () => (await import("../init-command.js")).addInitCommand,
    },
    add: {
      summary: "Add a dependent, an external dependent, an event source or a controller",
      load: async () => (await import("../add-command.js")).addAddCommand,
    },
    dev: {
      summary: "Run the operator, and restart it when you change a CRD, the spec or code",
      load: async () => (await import("../dev-command.js")).addDevCommand,
    },
    generate: {
      summary: "Generate code from workflow.yaml and crds/",
      load: async () => (await import("../generate-command.js")).addGenerateCommand,
    },
    suggest: {
      summary: "Suggest what the caches of event sources keep",
      load: async () => (await import("../suggest-command.js")).addSuggestCommand,
    },
    types: {
      summary: "Generate typed resources from CRDs, without a workflow",
      load: async () => (await import("../types-command.js")).addTypesCommand,
    },
    diff: {
      summary: "Show what a change of a CRD or of the spec breaks",
      load: async () => (await import("../diff-command.js")).addDiffCommand,
    },
    graph: {
      summary: "Show the dependents and their order",
      load: async () => (await import("../graph-command.js")).addGraphCommand,
    },
    explain: {
      summary: "Explain a rule that a message names, or a field of the spec",
      load: async () => (await import("../explain-command.js")).addExplainCommand,
    },
    doctor: {
      summary: "Check the installation, the project and a cluster",
      load: async () => (await import("../doctor-command.js")).addDoctorCommand,
    },
    schema: {
      summary: "Print the JSON Schema of the spec, or of a kind, for an editor",
      load: async () => (await import("../schema-command.js")).addSchemaCommand,
    },
    completion: {
      summary: "Print the completion script of a shell",
      load: async () => (await import("../completion-command.js")).addCompletionCommand,
    },
  }),
);
