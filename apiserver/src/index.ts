export { startApiServer, type ApiServer, type ApiServerOptions, type RequestRecord } from "./server.js";
export type { FaultScope } from "./faults/fault-injection.js";
export type { ActiveFault, DisturbedWatches, FaultAnswer, FaultControl, FaultRule } from "./faults/fault-injection.js";
export type { StaticUser } from "./identity/authenticator.js";
export type { CertificateAccess, UserAccess } from "./identity/user-access.js";
export { waitFor, type WaitOptions } from "./wait-for.js";
