/** Long property runs and repeats with older packages: only with CI_FULL=1. */
export const full = process.env['CI_FULL'] === '1';
