// Operators in processes of their own.
import { spawn } from "node:child_process";
import { waitFor } from "#apiserver/wait-for.js";
import type { Connection } from "../../../support/api/api-request.js";

/** What a program differs in. */
interface ProgramOptions {
  /** The arguments of `configMapOf` for the dependent. Default: "text" */
  readonly dependent?: string;
  /** The dependents, as an expression. Default: one ConfigMap, which `dependent` configures */
  readonly dependents?: string;
  /** What the controller has besides, such as `eventSources: () => [],`. */
  readonly controller?: string;
  /** What the options of runOperator have besides the connection. */
  readonly options?: string;
  /** The reconciler of the controller. */
  readonly reconciler?: string;
  /** What is done before and after the run. */
  readonly before?: string;
  readonly after?: string;
}

/** Writes a program that runs an operator for Pages. */
export function programOf(
  { url, token = "", ca }: Partial<Connection> & Pick<Connection, "url">,
  given: ProgramOptions = {},
): string {
  const { dependent = '"text"', options = "", reconciler = "{}", before = "", after = "", controller = "" } = given;
  const { dependents = `[configMapOf(${dependent})]` } = given;
  return `
    import { runOperator, informerSource, updateStatus } from ${JSON.stringify(import.meta.resolve("#runtime/index.js"))};
    import { Page, ConfigMap, configMapOf } from ${JSON.stringify(import.meta.resolve("../page.js"))};
    const connection = ${JSON.stringify({ url, token, ca })};
    ${before}
    const workflow = { primary: Page.definition, dependents: ${dependents} };
    const controller = { name: "page", workflow, reconciler: { reconcile: () => {}, ...${reconciler} }, ${controller} };
    await runOperator([controller], { connection, ${options} });
    ${after}
  `;
}

/** Runs a program in a process of its own. */
export function run(source: string, env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const ended = new Promise<number | null>((done) => child.once("exit", (code) => done(code)));
  const lines = () => output.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Line] : []));
  const started = () => waitFor("it runs", () => lines().some(({ message }) => message === "started"));
  return { child, ended, lines, started, output: () => output };
}

interface Line {
  readonly level: string;
  readonly message: string;
  readonly stack?: string;
  readonly finished?: boolean;
}
