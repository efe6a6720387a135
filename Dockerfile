# A server of saved models: docker run -p 8000:8000 -e CASTALIA_TOKEN=… -v MODEL:/model:ro IMAGE churn=/model --host 0.0.0.0
FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu "/src[serve]" \
 && rm -rf /src && useradd --system --no-create-home castalia
USER castalia
EXPOSE 8000
ENTRYPOINT ["castalia", "serve"]
