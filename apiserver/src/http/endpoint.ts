/** Handles a request: authenticates, authorizes, and dispatches it to discovery, a server path, or a resource. */
import type { Admission } from "../admission/admission.js";
import type { RestStrategy } from "../builtin/rest-strategy.js";
import { isTrue } from "../decode/options.js";
import { discoveryAnswer } from "../discovery/discovery.js";
import { durationProblem } from "../errors/go-duration.js";
import {
  StatusError,
  badRequest,
  internalError,
  methodNotAllowed,
  notFound,
  unknownResource,
} from "../errors/status-error.js";
import { type Identity, impersonate } from "../identity/authenticator.js";
import { type AccessAttributes, type Decision, accessDenied } from "../identity/authorizer.js";
import type { UserInfo } from "../identity/user.js";
import { resourceRefOf } from "../object/object-meta.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import {
  type ResourceRequest,
  deprecationWarningOf,
  readList,
  readObject,
  readWatch,
  writeCreate,
  writeDelete,
  writeDeleteCollection,
  writePatch,
  writeUpdate,
} from "./handlers.js";
import { renderFailure } from "./representation.js";
import { type Answer, type ApiRequest, type ResourcePath, type StreamAnswer, isWatch, verbOf } from "./request-info.js";
import { createReview } from "./reviews.js";
import { answerServerPath } from "./server-paths.js";
import { bind } from "./subresources/binding.js";
import { SUBRESOURCES, type SubresourceHandler } from "./subresources/table.js";

/** The dependencies of request handling. */
interface EndpointOptions {
  registry: Registry;
  admission: Admission;
  identity: Identity;
  /** The token that replaces the administrator's. */
  replacedToken?: string | undefined;
  /** Returns the request metrics in Prometheus format. */
  requestMetrics: () => string[];
  /** Called with the user of a request and the authorization decision. */
  onDecision?: ((authorized: Authorized) => void) | undefined;
}

const PLAIN = "text/plain; charset=utf-8";

/** Handles a request. Errors are rendered as responses. */
export async function answerRequest(options: EndpointOptions, request: ApiRequest): Promise<Answer | StreamAnswer> {
  const warnings: string[] = [];
  try {
    checkTimeout(request);
    const { identity, replacedToken: replaced, onDecision } = options;
    const user = authorizeRequest(identity, request, { replaced, warnings, onDecision });
    return openAnswer(options, request, warnings) ?? (await answerResource(options, { request, user, warnings }));
  } catch (error) {
    const failure = error instanceof StatusError ? error : internalError(textOf(error));
    const isPretty = isTrue(request.query.get("pretty"));
    return renderFailure(failure, { isPretty, warnings, accept: request.headers.accept });
  }
}

// The timeout is validated before authentication. Long-running requests ignore it.
function checkTimeout({ query, target }: ApiRequest): void {
  const timeout = query.get("timeout") ?? "";
  if (timeout === "" || SUBRESOURCES.get(target?.subresource ?? "")?.isLongRunning === true) return;
  if (target !== undefined && target.name === undefined && isWatch(query, target)) return;
  const problem = durationProblem(timeout);
  if (problem !== undefined) throw badRequest(`invalid timeout specified in the request URL - ${problem}`);
}

function openAnswer(
  { registry, identity, requestMetrics }: EndpointOptions,
  request: ApiRequest,
  warnings: string[],
): Answer | undefined {
  const { path, query, headers, method, target } = request;
  if ((method !== "GET" && method !== "HEAD") || target !== undefined) return undefined;
  const own = answerServerPath({ registry, tokens: identity.tokens, requestMetrics }, request);
  if (own !== undefined) return { ...own, warnings };
  if (method !== "GET") return undefined;
  const asked = { path: `${path}?${query.toString()}`, accept: headers.accept ?? "" };
  const answer = discoveryAnswer(asked, registry.types);
  return answer === undefined ? undefined : { kind: "answer", ...answer, warnings };
}

function answerResource(
  options: EndpointOptions,
  asked: { request: ApiRequest; user: UserInfo; warnings: string[] },
): Promise<Answer> | Answer | StreamAnswer {
  const { user, warnings } = asked;
  const isHead = asked.request.method === "HEAD";
  const request: ApiRequest = isHead ? { ...asked.request, method: "GET" } : asked.request;
  const path = request.target;
  const { registry, admission, identity } = options;
  if (path === undefined) return unknownPath(registry, groupOf(request.path));
  const resource = registry.find(path);
  if (resource === undefined || !isInScope(resource, path, request.method)) return unknownPath(registry, path.group);
  // kube-apiserver has no HEAD routes for built-in kinds.
  if (isHead && resource.type.custom === undefined) throw methodNotAllowed();
  const { namespace, name = "", subresource = "" } = path;
  const deprecation = deprecationWarningOf(resource, subresource, registry);
  if (deprecation !== undefined) warnings.push(deprecation);
  const place = { resource, namespace, name, subresource };
  const on: ResourceRequest = { registry, admission, identity, request, user, ...place, warnings };
  if (subresource !== "") return subresourceHandlerOf(on).answer(on);
  checkVerb(on);
  return name === "" ? answerCollection(on, path) : answerObject(on);
}

/** Handlers for the POST of a collection. Bindings and reviews are not stored. */
const CREATE: Readonly<Record<RestStrategy["creates"], (on: ResourceRequest) => Promise<Answer>>> = {
  object: writeCreate,
  binding: bind,
  review: createReview,
};

function answerCollection(on: ResourceRequest, path: ResourcePath): Promise<Answer> | Answer | StreamAnswer {
  switch (on.request.method) {
    case "GET":
      return isWatch(on.request.query, path) ? readWatch(on) : readList(on);
    case "POST":
      return CREATE[on.resource.type.strategy.creates](on);
    default:
      return writeDeleteCollection(on);
  }
}

function answerObject(on: ResourceRequest): Promise<Answer> | Answer {
  switch (on.request.method) {
    case "GET":
      return readObject(on);
    case "PUT":
      return writeUpdate(on);
    case "PATCH":
      return writePatch(on);
    case "POST":
      return writeCreate(on);
    default:
      return writeDelete(on);
  }
}

function subresourceHandlerOf(on: ResourceRequest): SubresourceHandler {
  const { resource, subresource, name, request } = on;
  const { type } = resource;
  const declared = type.subresources.find((known) => known.name === subresource);
  if (declared === undefined) throw type.custom === undefined ? unknownResource() : notFound(resourceRefOf(type, name));
  const handler = SUBRESOURCES.get(subresource);
  const verb = verbOf(request);
  if (handler === undefined || !declared.verbs.includes(verb)) throw refusedVerb(on, verb);
  return handler;
}

function checkVerb(on: ResourceRequest): void {
  const { resource, name, request, namespace } = on;
  const { type } = resource;
  const verb = verbOf(request);
  const needsName = request.method === "PUT" || request.method === "PATCH";
  if (needsName && name === "" && type.custom !== undefined) throw badRequest("name must be provided");
  // A custom resource can also be created by a POST to its name.
  const isMisplaced =
    name === "" ? verb === "update" || verb === "patch" : verb === "create" && type.custom === undefined;
  const needsNamespace = verb === "create" || verb === "deletecollection";
  const isUnscoped = type.namespaced && namespace === undefined && needsNamespace;
  if (isMisplaced || isUnscoped || !type.verbs.includes(verb)) throw refusedVerb(on, verb);
}

function refusedVerb({ resource }: ResourceRequest, verb: string): Error {
  const { type } = resource;
  if (type.custom === undefined) return methodNotAllowed();
  return methodNotAllowed({ verb, resource: type.plural, group: type.group });
}

function isInScope({ type }: ServedResource, path: ResourcePath, method: string): boolean {
  if (!type.namespaced) return path.namespace === undefined;
  // Requests for custom resources across all namespaces are read-only.
  if (type.custom !== undefined && path.namespace === undefined && method !== "GET") return false;
  return path.namespace !== undefined || path.name === undefined;
}

function unknownPath(registry: Registry, group: string | undefined): Answer {
  if (group !== undefined && registry.isBuiltinGroup(group)) throw unknownResource();
  return plainAnswer(404, "404 page not found\n");
}

// The group of a path that ends with a version.
function groupOf(path: string): string | undefined {
  if (/^\/api\/[^/]+\/?$/.test(path)) return "";
  return /^\/apis\/([^/]+)\/[^/]+\/?$/.exec(path)?.[1];
}

function plainAnswer(status: number, body: string): Answer {
  return { kind: "answer", status, contentType: PLAIN, body };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The authenticated sender of a request, the user that it impersonates, and the decision. */
export interface Authorized {
  readonly sender: UserInfo;
  readonly user: UserInfo;
  readonly decision: Decision;
}

/**
 * Authenticates and authorizes a request, reports the decision to `onDecision`, and returns the user.
 *
 * @throws 401 for invalid credentials, 403 if RBAC does not allow the request.
 */
function authorizeRequest(
  { authenticator, authorizer }: Identity,
  request: ApiRequest,
  options: {
    replaced?: string | undefined;
    warnings: string[];
    onDecision?: ((authorized: Authorized) => void) | undefined;
  },
): UserInfo {
  const sender = authenticator.authenticate(request, options);
  const attributes = attributesOf(request);
  const user = impersonate(sender, { headers: request.headers, attributes }, authorizer);
  const decision = authorizer.decide(user, attributes);
  options.onDecision?.({ sender, user, decision });
  if (!decision.allowed) throw accessDenied(user, attributes);
  return user;
}

/** Returns the authorization attributes of a request. */
export function attributesOf(request: ApiRequest): AccessAttributes {
  const { target, method, path } = request;
  if (target === undefined) return { verb: method.toLowerCase(), path };
  const { group, plural, subresource = "", namespace, name } = target;
  // As in Kubernetes, the namespace of a request for a Namespace is its name.
  const isNamespace = group === "" && plural === "namespaces";
  return {
    verb: verbOf(request),
    group,
    resource: plural,
    subresource,
    namespace: namespace ?? (isNamespace ? (name ?? "") : ""),
    name: name ?? target.watchedName ?? nameOfSelector(request.query),
  };
}

// Listing or watching a single object by metadata.name is authorized for that name.
function nameOfSelector(query: URLSearchParams): string {
  return /^metadata\.name={1,2}([^,!=]+)$/.exec(query.get("fieldSelector") ?? "")?.[1] ?? "";
}
