import { isTrue } from "../../decode/options/query-boolean.js";
import type { ApiRequest } from "../message.js";
import type { ResourcePath } from "./resource-path.js";

/** Returns the verb of a request in the words of Kubernetes, for authorization, records and fault rules. */
export function verbOf({ method, target, query }: ApiRequest): string {
  const isCollection = target !== undefined && target.name === undefined;
  if (method === "GET" && isCollection) return isWatch(query, target) ? "watch" : "list";
  if (method === "DELETE") return isCollection ? "deletecollection" : "delete";
  return { POST: "create", PUT: "update" }[method] ?? method.toLowerCase();
}

/** Says whether a GET of a collection is a watch. */
export function isWatch(query: URLSearchParams, path: ResourcePath): boolean {
  return path.isWatchPath || isTrue(query.get("watch"));
}
