import type { ApiClient } from "@gen-operator/runtime";
import type { ProjectModel } from "../model/project-model.js";
import { operatorUserOf, requiredRights, type RequiredRight } from "../output/deploy/required-rights.js";
import { ok, skipped, type Check } from "./check.js";
import { missingRights } from "./missing-rights.js";

/** Whose rights are checked. */
export interface Subject {
  /** The name that the cluster has for it; absent if the cluster does not tell. */
  readonly user?: string;
  /** Whether it was asked for by `--as`. */
  readonly isNamed: boolean;
}

const NAME = "rights";
const TIMEOUT_MS = 30_000;

/** Asks the cluster, once for each namespace, which rights of `deploy/generated/rbac.yaml` the user of the client has. */
export async function checkRights(client: ApiClient, model: ProjectModel, subject: Subject): Promise<Check[]> {
  const { messageOf } = await import("@gen-operator/runtime");
  const rights = requiredRights(model);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const operator = operatorUserOf(model);
  try {
    const missing = await missingRights(client, rights, signal);
    return [judge(rights.length, missing, { subject, operator }), ...otherClusters(model)];
  } catch (error) {
    return [skipped(NAME, messageOf(error), "ask for the right to create selfsubjectrulesreviews")];
  }
}

interface Whose {
  readonly subject: Subject;
  /** The user that the operator is in the cluster. */
  readonly operator: string;
}

function judge(count: number, missing: readonly RequiredRight[], { subject, operator }: Whose): Check {
  const { user = "the user of the kubeconfig", isNamed } = subject;
  const isOperator = user === operator;
  const others = isOperator ? "" : `; the operator's own: --as ${operator}`;
  if (missing.length === 0) return ok(NAME, `${user} has all ${count} rights of deploy/generated/rbac.yaml${others}`);
  return {
    name: NAME,
    // An operator runs as its service account; a user who develops it may have less.
    outcome: isNamed ? "failed" : "warning",
    message: `${user} lacks ${missing.length} of ${count} rights of deploy/generated/rbac.yaml`,
    details: describe(missing),
    advice: isOperator
      ? "run kubectl apply -k deploy/generated"
      : `check the operator's own rights with --as ${operator}`,
  };
}

/** Describes rights with one line for each object of them: `deployments.apps in all namespaces: create, patch (dependent web of page)`. */
function describe(rights: readonly RequiredRight[]): string[] {
  const lines = new Map<string, { readonly verbs: string[]; readonly because: string }>();
  for (const right of rights) {
    const subject = subjectOf(right);
    const known = lines.get(subject);
    if (known === undefined) lines.set(subject, { verbs: [right.verb], because: right.because });
    else known.verbs.push(right.verb);
  }
  return [...lines].map(([subject, { verbs, because }]) => `${subject}: ${verbs.join(", ")} (${because})`);
}

function subjectOf({ group = "", resource = "", name, namespace, path }: RequiredRight): string {
  if (path !== undefined) return path;
  const kind = group === "" ? resource : `${resource}.${group}`;
  const which = name === undefined ? kind : `${kind} ${JSON.stringify(name)}`;
  return `${which} in ${namespace === undefined ? "all namespaces" : `namespace ${namespace}`}`;
}

function otherClusters({ controllers }: ProjectModel): Check[] {
  const names = new Set(
    controllers.flatMap(({ dependents }) =>
      dependents.flatMap((each) => ("cluster" in each && each.cluster !== undefined ? [each.cluster] : [])),
    ),
  );
  return [...names]
    .sort()
    .map((name) =>
      skipped(
        `rights in cluster ${name}`,
        "the kubeconfig of the operator names that cluster",
        `compare deploy/generated/clusters/${name}.yaml with what is applied there: kubectl diff -f`,
      ),
    );
}
