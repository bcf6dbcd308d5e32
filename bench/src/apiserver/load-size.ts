/** BENCH_SHARE=0.1 tries everything out with a tenth of the load. */
export const SHARE = Number(process.env["BENCH_SHARE"] ?? 1);

/** How many write at once. */
export const CLIENTS = 10;

/** How many objects are created before anything is measured: what is compiled while it runs gets faster until then. */
export const WARM_UP_CREATES = 10_000 * SHARE;
