// Module OortSignIn.
