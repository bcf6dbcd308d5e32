import type { Connection, SimulatedController, Simulation, SimulationOptions } from "./simulate/index.js";
import type { ServingCertificate } from "./x509/authority.js";

/** The simulated controllers of a server: all (`true`), none (`false`), a list of names, or those that the options select. */
export type Simulated = boolean | readonly SimulatedController[] | SimulationOptions;

/** Starts the simulated controllers, if any. They are loaded lazily, because most tests run without them. */
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

/** Throws an Error for unknown controllers or options. */
export async function checkSimulated(simulated: Simulated | undefined): Promise<void> {
  if (typeof simulated !== "object") return;
  const { checkSimulationOptions } = await import("./simulate/index.js");
  checkSimulationOptions(optionsOf(simulated));
}

/** Reports whether a simulated controller is enabled. */
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
