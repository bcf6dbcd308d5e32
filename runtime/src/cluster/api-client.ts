/** placeholder */
export interface ApiClient {}
