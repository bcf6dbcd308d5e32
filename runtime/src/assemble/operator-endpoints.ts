import type { Logger } from "../base/logger.js";
import { bindAddressOf } from "../operate/http/bind-address.js";
import { HttpEndpoint, type EndpointHandler } from "../operate/http/http-endpoint.js";
import { probeHandler, type ProbeChecks, type ProbeSubject } from "../operate/http/probes.js";

/** Where an operator is looked at. */
export interface EndpointSettings {
  /**
   * Where the probes `/livez`, `/readyz` and `/startupz` are answered: `:8081`, `127.0.0.1:8081`, or `0` for nowhere. Default: `0`, and `:8081`
   * for `runOperator` in a pod.
   */
  readonly healthProbeBindAddress?: string | undefined;
  /** What the probes look at besides the operator. */
  readonly checks?: ProbeChecks | undefined;
}

/** The HTTP servers of an operator, over all its starts. */
export class OperatorEndpoints {
  readonly #endpoints: readonly HttpEndpoint[];

  constructor(
    { healthProbeBindAddress = "0", checks = {} }: EndpointSettings,
    { logger, ...subject }: Omit<ProbeSubject, "checks"> & { readonly logger: Logger },
  ) {
    const probes = probeHandler({ ...subject, checks });
    this.#endpoints = [
      ...endpointAt("healthProbeBindAddress", healthProbeBindAddress, { what: "the probes", handle: probes, logger }),
    ];
  }

  /** Opens those that are not open; throws for an address that cannot be had. */
  async open(): Promise<void> {
    for (const endpoint of this.#endpoints) await endpoint.open();
  }

  async close(): Promise<void> {
    await Promise.all(this.#endpoints.map((endpoint) => endpoint.close()));
  }
}

function endpointAt(
  setting: string,
  text: string,
  more: { readonly what: string; readonly handle: EndpointHandler; readonly logger: Logger },
): readonly HttpEndpoint[] {
  const address = bindAddressOf(setting, text);
  return address === undefined ? [] : [new HttpEndpoint({ setting, address, ...more })];
}
