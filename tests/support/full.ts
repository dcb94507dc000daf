/** True with CI_FULL=1: long property runs, and repeats with older packages. */
export const full = process.env['CI_FULL'] === '1';
