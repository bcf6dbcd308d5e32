import type { Connection, SimulatedController, Simulation, SimulationOptions } from "./simulate/index.js";
import type { ServingCertificate } from "./x509/authority.js";

/** What runs beside a server: everything, nothing, these controllers, or what the options say. */
export type Simulated = boolean | readonly SimulatedController[] | SimulationOptions;

/** Starts the controllers, if there are any: a client like any other, which most tests do without. */
export async function startSimulationOf(
  connection: Connection,
  simulated: Simulated | undefined,
  { serving, now }: { serving: ServingCertificate | undefined; now: () => Date },
): Promise<Simulation | undefined> {
  if (simulated === undefined || simulated === false) return undefined;
  const { startSimulation } = await import("./simulate/index.js");
  const authority = serving === undefined ? {} : { authority: { certificate: serving.ca, key: serving.caKey } };
  return startSimulation(connection, { ...authority, now, unref: true, ...optionsOf(simulated) });
}

/** Throws an Error for controllers and options that do not exist. */
export async function checkSimulated(simulated: Simulated | undefined): Promise<void> {
  if (typeof simulated !== "object") return;
  const { checkSimulationOptions } = await import("./simulate/index.js");
  checkSimulationOptions(optionsOf(simulated));
}

/** Is this controller among those that run? */
export function isSimulated(name: SimulatedController, simulated: Simulated = false): boolean {
  if (simulated === false) return false;
  const { only, except = [] } = optionsOf(simulated);
  return (only?.includes(name) ?? true) && !except.includes(name);
}

export type { Simulation };

function optionsOf(simulated: Exclude<Simulated, false>): SimulationOptions {
  if (simulated === true) return {};
  return isList(simulated) ? { only: simulated } : simulated;
}

function isList(value: object): value is readonly SimulatedController[] {
  return Array.isArray(value);
}
