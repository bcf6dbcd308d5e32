import { resolve } from "node:path";
import { buildModel } from "../check/build-model.js";
import { hasErrors } from "../diagnostic.js";
import type { ClusterOptions } from "../read/cluster.js";
import { readProject } from "../read/read-project.js";
import { findCluster } from "./check-cluster.js";
import { checkCode } from "./check-code.js";
import { checkKinds } from "./check-kinds.js";
import { checkPackages, checkTsconfig } from "./check-packages.js";
import { checkRights } from "./check-rights.js";
import { checkTakeover } from "./check-takeover.js";
import { type Check, failed, skipped } from "./check.js";

/** Options of {@link examineProject}. */
export interface ExamineOptions {
  /** Folder of the workflow specs. */
  readonly project: string;
  /** The cluster to check. Default: the current context of kubectl */
  readonly cluster: ClusterOptions;
  /** True to list only what `formerFieldManagers` removes. Default: false */
  readonly takeover?: boolean;
  /** The command that updates generated code. */
  readonly update: string;
  /** Called with a description of each step as it starts, for progress output. */
  readonly onStep?: (step: string) => void;
}

/** Checks the requirements of a project on this machine and in a cluster, and yields each result. Writes nothing. */
export async function* examineProject(options: ExamineOptions): AsyncGenerator<Check, void> {
  const { project, cluster, update, onStep = () => {} } = options;
  const root = resolve(project);
  if (options.takeover === true) return yield* examineTakeover(root, options);
  yield* await checkPackages(root);
  yield checkTsconfig(root);
  onStep("checking the code");
  yield* await checkCode(root, update);
  onStep("checking the cluster");
  const { checks, client, user } = await findCluster(cluster);
  yield* checks;
  if (client === undefined) {
    yield skipped("kinds", "cluster not found");
    return yield skipped("rights", "cluster not found");
  }
  try {
    const input = await readProject(root);
    const { model } = hasErrors(input.diagnostics) ? {} : await buildModel(input);
    if (model === undefined) {
      yield skipped("kinds", "the spec has errors");
      return yield skipped("rights", "the spec has errors");
    }
    yield* await checkKinds(client, model, input.crds);
    const subject = { isNamed: cluster.user !== undefined, ...(user === undefined ? {} : { user }) };
    yield* await checkRights(client, model, subject);
  } finally {
    await client.close();
  }
}

async function* examineTakeover(root: string, { cluster, onStep = () => {} }: ExamineOptions): AsyncGenerator<Check> {
  const input = await readProject(root);
  const { model } = hasErrors(input.diagnostics) ? {} : await buildModel(input);
  if (model === undefined) return yield failed("takeover", "the spec has errors", "run npx gen-operator generate");
  onStep("checking the cluster");
  const { checks, client } = await findCluster(cluster);
  yield* checks;
  if (client === undefined) return yield failed("takeover", "cluster not found");
  try {
    yield* await checkTakeover(client, model);
  } finally {
    await client.close();
  }
}
