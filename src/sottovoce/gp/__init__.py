"""Models of functions: kernels and their fit, random Fourier features, posteriors."""
