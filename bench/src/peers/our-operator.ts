import { startFlags } from "#test/support/projects/start-flags.js";
import { deployWorkload } from "../operators/deployed-project.js";
import type { OperatorCommand } from "../operators/operator-process.js";

/** Builds the operator of the workload on this repository's runtime, bundled and started as in the image of a generated project. */
export async function buildOurOperator(folder: string, program?: string): Promise<OperatorCommand> {
  const { bundled } = await deployWorkload(folder, program);
  return { name: "gen-operator", program: process.execPath, args: [...startFlags, bundled.main] };
}
