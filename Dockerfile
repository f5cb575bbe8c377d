# The course in JupyterLab: Python, `make lab` and a port. docs/hosted.md says how it is started.
FROM python:3.12

RUN useradd --create-home --uid 1000 learner && install --directory --owner learner /course /course/work
USER 1000
WORKDIR /course
COPY --chown=learner . .
RUN make install-lab

EXPOSE 8888
CMD ["make", "lab", "BROWSER=none", "PORT=8888", "IP=0.0.0.0"]
