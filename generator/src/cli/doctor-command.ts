import { counted } from "../diagnostic.js";
import type { Check } from "../doctor/check.js";
import type { AddCommand } from "./command.js";
import { FORMAT_OPTION, createProgressLine, generateCommandOf, painterFor, printJson, printLine } from "./print.js";

/** Adds the `gen-operator doctor` command. */
export const addDoctorCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "doctor",
    summary,
    (command) =>
      command
        .usage(
          "$0 doctor [--project DIR] [--kubeconfig FILE] [--context NAME] [--as USER] [--takeover]\n\n" +
            "Checks versions, compiler options and generated code. With a cluster, also compares the CRDs, and checks whether you have\n" +
            "each permission of deploy/generated/rbac.yaml. Writes nothing. Exits with 1 if a check failed.",
        )
        .option("project", {
          type: "string",
          requiresArg: true,
          default: ".",
          describe: "The folder with workflow.yaml",
        })
        .option("kubeconfig", {
          type: "string",
          requiresArg: true,
          describe: "The kubeconfig of the cluster [default: kubectl's]",
        })
        .option("context", {
          type: "string",
          requiresArg: true,
          describe: "The context of the kubeconfig [default: the current one]",
        })
        .option("as", {
          type: "string",
          requiresArg: true,
          describe:
            "Check as this user, such as system:serviceaccount:NAMESPACE:NAME, which you must be allowed to impersonate",
        })
        .option("takeover", {
          type: "boolean",
          default: false,
          describe: "Only list the fields that formerFieldManagers would remove, by a dry run on the API server",
        })
        .option("format", {
          ...FORMAT_OPTION,
          choices: ["text", "json"] as const,
          describe: "The output format: text, or one JSON document",
        })
        .example("$0 doctor", "this machine, this project, and the current cluster")
        .example("$0 doctor --as system:serviceaccount:web-system:web", "with the permissions of the operator")
        .example("$0 doctor --takeover", "before formerFieldManagers is deployed")
        .example("$0 doctor --format json", "for a program"),
    async ({ project, kubeconfig, context, as: user, takeover, format }) => {
      const { examineProject } = await import("../doctor/examine-project.js");
      const cluster = {
        ...(kubeconfig === undefined ? {} : { kubeconfig }),
        ...(context === undefined ? {} : { context }),
        ...(user === undefined ? {} : { user }),
      };
      const checks: Check[] = [];
      const progress = createProgressLine();
      const update = generateCommandOf(project);
      for await (const check of examineProject({ project, cluster, takeover, update, onStep: progress.report })) {
        progress.clear();
        checks.push(check);
        if (format === "text") for (const line of linesOf(check)) printLine(line);
      }
      const exitCode = checks.some(({ outcome }) => outcome === "failed") ? 1 : 0;
      if (format === "json") printJson({ checks, exitCode });
      else printLine(summaryOf(checks));
      end(exitCode);
    },
  );
};

const STYLES = { ok: "green", warning: "yellow", failed: "red", skipped: "dim" } as const;
const INDENT = " ".repeat("warning  ".length);

function linesOf({ name, outcome, message, details = [], advice }: Check): string[] {
  return [
    `${painterFor(process.stdout)(STYLES[outcome], outcome)}${" ".repeat(INDENT.length - outcome.length)}${name}: ${message}`,
    ...details.map((line) => `${INDENT}  ${line}`),
    ...(advice === undefined ? [] : [`${INDENT}→ ${advice}`]),
  ];
}

function summaryOf(checks: readonly Check[]): string {
  return (["ok", "warning", "failed", "skipped"] as const)
    .map((outcome) => ({ outcome, count: checks.filter((check) => check.outcome === outcome).length }))
    .filter(({ count }) => count > 0)
    .map(({ outcome, count }) => (outcome === "warning" ? counted(count, outcome) : `${count} ${outcome}`))
    .join(", ");
}
