import type { ProjectModel } from "../../model/project-model.js";
import { operatorNameOf } from "../naming.js";
import { namespaceOf } from "./manifests.js";
import { controllerGrants, EVERYWHERE, leaderGrants, OWN_NAMESPACE } from "./grants.js";
import { rolesOf, type Role, type Rule } from "./roles.js";

/** One thing that an operator has to be allowed: a verb on a resource, or on a path of the API server. */
export interface RequiredRight {
  readonly verb: string;
  /** Absent for a path. */
  readonly group?: string;
  /** The plural of a kind, or a part of it: `webpages/status`. */
  readonly resource?: string;
  /** The only object that it is about. */
  readonly name?: string;
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly path?: string;
  readonly because: string;
}

/** Returns what the rules of `deploy/generated/rbac.yaml` allow in the operator's own cluster, one verb at a time. */
export function requiredRights({ packageName, controllers }: ProjectModel): RequiredRight[] {
  const name = operatorNameOf(packageName);
  const grants = [...leaderGrants(`${name}-leader`), ...controllers.flatMap(controllerGrants)];
  const roles = rolesOf(
    grants.filter(({ cluster }) => cluster === undefined),
    controllers,
  );
  return roles.flatMap((role) => role.rules.flatMap((rule) => rightsOf(rule, placeOf(role, name))));
}

/** Returns the user that an operator is in its cluster. */
export function operatorUserOf({ packageName }: ProjectModel): string {
  const name = operatorNameOf(packageName);
  return `system:serviceaccount:${namespaceOf(name)}:${name}`;
}

function placeOf({ place }: Role, name: string): Pick<RequiredRight, "namespace"> {
  if (place === EVERYWHERE) return {};
  return { namespace: place === OWN_NAMESPACE ? namespaceOf(name) : place };
}

function rightsOf(rule: Rule, place: Pick<RequiredRight, "namespace">): RequiredRight[] {
  const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [], verbs } = rule;
  const because = rule.because.join(", ");
  const names = resourceNames.length === 0 ? [{}] : resourceNames.map((name) => ({ name }));
  return verbs.flatMap((verb) => [
    ...nonResourceURLs.map((path) => ({ verb, path, because })),
    ...apiGroups.flatMap((group) =>
      resources.flatMap((resource) => names.map((name) => ({ verb, group, resource, ...name, ...place, because }))),
    ),
  ]);
}
